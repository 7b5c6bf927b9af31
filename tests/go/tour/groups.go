package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"":                   kgo.CooperativeStickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
}

// member is a group member and what it owns now.
type member struct {
	client  *kgo.Client
	topic   string
	mu      sync.Mutex
	owned   []int32
	changed chan struct{}
}

// update changes what the member owns and wakes whoever waits for that.
func (m *member) update(change func([]int32) []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = change(m.owned)
	slices.Sort(m.owned)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *member) look() ([]int32, chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owned), m.changed
}

func join(t *tour, _ context.Context, s step) (any, error) {
	m := &member{topic: s.Topic, changed: make(chan struct{})}
	added := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		m.update(func(owned []int32) []int32 { return append(owned, partitions[s.Topic]...) })
	}
	removed := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		m.update(func(owned []int32) []int32 {
			return slices.DeleteFunc(owned, func(each int32) bool {
				return slices.Contains(partitions[s.Topic], each)
			})
		})
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(s.Group),
		kgo.ConsumeTopics(s.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancers[s.Balancer]),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(100 * time.Millisecond), // members learn of a rebalance by heartbeat
		kgo.OnPartitionsAssigned(added),
		kgo.OnPartitionsRevoked(removed),
		kgo.OnPartitionsLost(removed),
	}
	if s.InstanceID != "" {
		options = append(options, kgo.InstanceID(s.InstanceID))
	}
	client, err := t.client(options...)
	if err != nil {
		return nil, err
	}
	m.client = client
	t.members[s.Name] = m
	return nil, nil
}

func (t *tour) member(name string) (*member, error) {
	if m, open := t.members[name]; open {
		return m, nil
	}
	return nil, fmt.Errorf("no member %q is open", name)
}

// assigned waits until the member owns count partitions and returns them.
func assigned(t *tour, ctx context.Context, s step) (any, error) {
	m, err := t.member(s.Name)
	if err != nil {
		return nil, err
	}
	for {
		owned, changed := m.look()
		if len(owned) == s.Count {
			return owned, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s owns %v, not %d partitions", s.Name, owned, s.Count)
		}
	}
}

func poll(t *tour, ctx context.Context, s step) (any, error) {
	m, err := t.member(s.Name)
	if err != nil {
		return nil, err
	}
	return gather(ctx, m.client, s.Count)
}

func commit(t *tour, ctx context.Context, s step) (any, error) {
	m, err := t.member(s.Name)
	if err != nil {
		return nil, err
	}
	return nil, m.client.CommitUncommittedOffsets(ctx)
}

// leave closes the member; one with an instance id stays a member until its session ends.
func leave(t *tour, _ context.Context, s step) (any, error) {
	m, err := t.member(s.Name)
	if err != nil {
		return nil, err
	}
	delete(t.members, s.Name)
	m.client.Close()
	return nil, nil
}
