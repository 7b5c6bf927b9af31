package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sharer is a member of a share group, and the records that it has not acknowledged.
type sharer struct {
	client *kgo.Client
	held   map[int64]*kgo.Record
}

// delivery is a record that a share group was given.
type delivery struct {
	Value  *string `json:"value"`
	Offset int64   `json:"offset"`
	Count  int32   `json:"delivery_count"`
}

var acks = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
	"renew":   kgo.AckRenew,
}

func shareJoin(t *tour, _ context.Context, s step) (any, error) {
	client, err := t.client(kgo.ShareGroup(s.Group), kgo.ConsumeTopics(s.Topic))
	if err != nil {
		return nil, err
	}
	t.sharers[s.Name] = &sharer{client, map[int64]*kgo.Record{}}
	return nil, nil
}

// sharePoll polls until count records have come; a further poll accepts those of the one before.
func sharePoll(t *tour, ctx context.Context, s step) (any, error) {
	m := t.sharers[s.Name]
	found := []delivery{}
	for len(found) < s.Count {
		fetches := m.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(found), s.Count, err)
		}
		for _, each := range fetches.Records() {
			m.held[each.Offset] = each
			found = append(found, delivery{text(each.Value), each.Offset, each.DeliveryCount()})
		}
	}
	return found, nil
}

// shareAck acknowledges one record, and waits until the broker has answered.
func shareAck(t *tour, ctx context.Context, s step) (any, error) {
	m := t.sharers[s.Name]
	m.held[s.Offset].Ack(acks[s.Acks])
	return nil, m.client.FlushAcks(ctx)
}

func shareLeave(t *tour, _ context.Context, s step) (any, error) {
	t.sharers[s.Name].client.Close()
	delete(t.sharers, s.Name)
	return nil, nil
}
