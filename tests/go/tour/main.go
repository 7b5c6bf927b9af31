// The franz-go client, step by step, over a pipe of JSON lines.
//
// Each line is {"op": NAME, …}; the answer is {"result": …} or {"error": TEXT}, where TEXT begins
// with Kafka's name of the error if it has one. The first step is {"op": "connect"}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// step holds every field that a step may have; each reads those it needs.
type step struct {
	Op         string            `json:"op"`
	Bootstrap  []string          `json:"bootstrap"`
	Name       string            `json:"name"`
	Topic      string            `json:"topic"`
	Group      string            `json:"group"`
	InstanceID string            `json:"instance_id"`
	Codec      string            `json:"codec"`
	Acks       string            `json:"acks"`
	Idempotent bool              `json:"idempotent"`
	Balancer   string            `json:"balancer"`
	Records    []record          `json:"records"`
	Partition  int32             `json:"partition"`
	Partitions int32             `json:"partitions"`
	Replicas   int16             `json:"replicas"`
	Offset     int64             `json:"offset"`
	Timestamp  int64             `json:"timestamp_ms"`
	Count      int               `json:"count"`
	TimeoutMs  int               `json:"timeout_ms"`
	Configs    map[string]string `json:"configs"`
	Committed  bool              `json:"read_committed"`
	Commit     bool              `json:"commit"`
	ID         string            `json:"transactional_id"`
	Source     string            `json:"source"`
}

// record is one record on its way in or out; offsets and timestamps are filled in by the broker.
type record struct {
	Key       *string           `json:"key"`
	Value     *string           `json:"value"`
	Headers   map[string]string `json:"headers,omitempty"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Timestamp int64             `json:"timestamp_ms"`
}

// tour is what the steps share: where the cluster is, and the group members that are open.
type tour struct {
	bootstrap []string
	members   map[string]*member
	producers map[string]*kgo.Client // transactional ones
	sharers   map[string]*sharer
}

type operation func(*tour, context.Context, step) (any, error)

var operations = map[string]operation{
	"connect":        connect,
	"produce":        produce,
	"read":           read,
	"join":           join,
	"poll":           poll,
	"assigned":       assigned,
	"commit":         commit,
	"leave":          leave,
	"create_topic":   createTopic,
	"add_partitions": addPartitions,
	"delete_topic":   deleteTopic,
	"topics":         topics,
	"offsets":        offsets,
	"configs":        configs,
	"set_configs":    setConfigs,
	"delete_records": deleteRecords,
	"group":          group,
	"groups":         groups,
	"committed":      committed,
	"delete_group":   deleteGroup,
	"txn_open":       txnOpen,
	"txn_send":       txnSend,
	"txn_end":        txnEnd,
	"txn_close":      txnClose,
	"transform":      transform,
	"share_join":     shareJoin,
	"share_poll":     sharePoll,
	"share_ack":      shareAck,
	"share_leave":    shareLeave,
}

func connect(t *tour, _ context.Context, s step) (any, error) {
	t.bootstrap = s.Bootstrap
	return nil, nil
}

func (t *tour) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(t.bootstrap...))...)
}

func text(bytes []byte) *string {
	if bytes == nil {
		return nil
	}
	value := string(bytes)
	return &value
}

func bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func describe(err error) string {
	var kafka *kerr.Error
	if errors.As(err, &kafka) {
		return kafka.Message + ": " + err.Error()
	}
	return err.Error()
}

func (t *tour) answer(line []byte) map[string]any {
	var s step
	if err := json.Unmarshal(line, &s); err != nil {
		return map[string]any{"error": err.Error()}
	}
	perform, known := operations[s.Op]
	if !known {
		return map[string]any{"error": "no such step: " + s.Op}
	}
	if s.TimeoutMs == 0 {
		s.TimeoutMs = 30_000
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.TimeoutMs)*time.Millisecond)
	defer cancel()
	result, err := perform(t, ctx, s)
	if err != nil {
		return map[string]any{"error": describe(err)}
	}
	return map[string]any{"result": result}
}

func main() {
	t := &tour{
		members:   map[string]*member{},
		producers: map[string]*kgo.Client{},
		sharers:   map[string]*sharer{},
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		answer, err := json.Marshal(t.answer(lines.Bytes()))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
	for _, member := range t.members {
		member.client.Close()
	}
}
