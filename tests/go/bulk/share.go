package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	sharedBytes = 100
	// As large as those of Java's producer by default: a share group acquires whole batches.
	sharedBatchBytes = 16_384
	sharedWait       = 20 * time.Millisecond
	warmUpPace       = 10 * time.Millisecond
)

// share lets the members of one share group consume count records, with implicit acknowledgement:
// each poll accepts the records of the one before. The group has the topic's
// name, and begins with the first record.
func share(seeds []string, topic string, count, members int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	producer := must(kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(sharedBatchBytes),
		kgo.MaxBufferedRecords(200_000),
	))
	// Everybody has had a record before any is counted; then they wait for all of them to be there.
	var seen, ready atomic.Int64
	var warm, done sync.WaitGroup
	gate := make(chan struct{})
	warm.Add(members)
	done.Add(members)
	for range members {
		go func() {
			defer done.Done()
			member(ctx, seeds, topic, func() { ready.Add(1); warm.Done(); <-gate }, func(records int) {
				if int(seen.Add(int64(records))) >= count {
					cancel()
				}
			})
		}()
	}
	value := make([]byte, sharedBytes)
	pace := time.NewTicker(warmUpPace)
	for int(ready.Load()) < members {
		must(0, producer.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr())
		<-pace.C
	}
	pace.Stop()
	warm.Wait()
	records := make([]kgo.Record, count)
	for i := range records {
		records[i].Value = value
		producer.Produce(ctx, &records[i], nil)
	}
	must(0, producer.Flush(ctx))
	begun := time.Now()
	close(gate)
	done.Wait()
	fmt.Printf("{\"seconds\": %.9f}\n", time.Since(begun).Seconds())
}

// member polls until the context ends, and tells how many records each poll after the first has.
func member(ctx context.Context, seeds []string, topic string, first func(), got func(int)) {
	client := must(kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.ShareGroup(topic),
		kgo.ConsumeTopics(topic),
		// A fetch that waits keeps back the acknowledgements that would make room for its records.
		kgo.MaxConcurrentFetches(0),
		kgo.FetchMaxWait(sharedWait),
	))
	warm := false
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		if err := fetches.Err(); err != nil {
			must(0, err)
		}
		records := fetches.NumRecords()
		if records == 0 {
			continue
		}
		if !warm {
			warm = true
			first()
			continue
		}
		got(records)
	}
}
