package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// txnOpen makes a transactional producer and has it initialised.
func txnOpen(t *tour, ctx context.Context, s step) (any, error) {
	client, err := t.client(
		kgo.TransactionalID(s.ID),
		kgo.TransactionTimeout(time.Duration(s.TimeoutMs)*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), // a new leader is looked for at once
	)
	if err != nil {
		return nil, err
	}
	t.producers[s.Name] = client
	id, epoch, err := client.ProducerID(ctx)
	return map[string]any{"producer_id": id, "epoch": epoch}, err
}

// txnSend begins a transaction, unless {"commit": false} says that one is open, and sends records.
func txnSend(t *tour, ctx context.Context, s step) (any, error) {
	client := t.producers[s.Name]
	if s.Commit {
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
	}
	var sent []*kgo.Record
	for _, each := range s.Records {
		sent = append(sent, &kgo.Record{Topic: s.Topic, Partition: each.Partition, Value: bytes(each.Value)})
	}
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	return plain(sent), nil
}

// txnEnd commits or aborts, and tells the producer's id and epoch from then on.
func txnEnd(t *tour, ctx context.Context, s step) (any, error) {
	client := t.producers[s.Name]
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(s.Commit)); err != nil {
		return nil, err
	}
	id, epoch, err := client.ProducerID(ctx)
	return map[string]any{"producer_id": id, "epoch": epoch}, err
}

func txnClose(t *tour, _ context.Context, s step) (any, error) {
	t.producers[s.Name].Close()
	delete(t.producers, s.Name)
	return nil, nil
}

// transform reads a topic as a member of a group and writes each value, in brackets, to another,
// in transactions that carry the offsets along; until count records are through.
func transform(t *tour, ctx context.Context, s step) (any, error) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(t.bootstrap...),
		kgo.TransactionalID(s.ID),
		kgo.ConsumerGroup(s.Group),
		kgo.ConsumeTopics(s.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic(s.Topic),
	)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	committed, transactions := 0, 0
	for committed < s.Count {
		fetches := session.PollRecords(ctx, 10)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		if err := session.Begin(); err != nil {
			return nil, err
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(r *kgo.Record) {
			value := []byte("<" + string(r.Value) + ">")
			session.Produce(ctx, &kgo.Record{Value: value}, promise.Promise())
		})
		ended, err := session.End(ctx, promise.Err() == nil)
		if err != nil {
			return nil, err
		}
		if ended {
			committed += fetches.NumRecords()
			transactions++
		}
	}
	return map[string]any{"records": committed, "transactions": transactions}, nil
}
