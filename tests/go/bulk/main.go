// Bulk produce and consume, transactions and share groups, by franz-go, for the bench; prints one JSON object.
//
//	bulk produce  BOOTSTRAP TOPIC COUNT BYTES
//	bulk consume  BOOTSTRAP TOPIC COUNT PASSES
//	bulk transact BOOTSTRAP TOPIC COUNT RECORDS
//	bulk share    BOOTSTRAP TOPIC COUNT MEMBERS
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: bulk COMMAND BOOTSTRAP TOPIC COUNT NUMBER")
		os.Exit(2)
	}
	seeds, topic := strings.Split(os.Args[2], ","), os.Args[3]
	count, number := must(strconv.Atoi(os.Args[4])), must(strconv.Atoi(os.Args[5]))
	switch os.Args[1] {
	case "produce":
		produce(seeds, topic, count, number)
	case "consume":
		consume(seeds, topic, count, number)
	case "transact":
		transact(seeds, topic, count, number)
	case "share":
		share(seeds, topic, count, number)
	default:
		must(0, fmt.Errorf("no such command: %s", os.Args[1]))
	}
}

const transactedBytes = 100

// transact makes transactions one by one; the topic's name is the transactional id as well.
func transact(seeds []string, topic string, count, records int) {
	client := must(kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.TransactionalID(topic),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	))
	ctx := context.Background()
	value := make([]byte, transactedBytes)
	sent := make([]*kgo.Record, records)
	var begun time.Time
	for i := -count / 10; i < count; i++ {
		if i == 0 {
			begun = time.Now()
		}
		if err := client.BeginTransaction(); err != nil {
			must(0, err)
		}
		for n := range sent {
			sent[n] = &kgo.Record{Value: value}
		}
		if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
			must(0, err)
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			must(0, err)
		}
	}
	fmt.Printf("{\"seconds\": %.9f}\n", time.Since(begun).Seconds())
}

func produce(seeds []string, topic string, count, bytes int) {
	client := must(kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(200_000),
	))
	ctx := context.Background()
	value := make([]byte, bytes)
	for i := range value {
		value[i] = byte('a' + i*7%26)
	}
	// Metadata, the producer id and the connection are the client's own start.
	if err := client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
		must(0, err)
	}
	var failed atomic.Int64
	delivered := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
		}
	}
	records := make([]kgo.Record, count-1)
	begun := time.Now()
	for i := range records {
		records[i].Value = value
		client.Produce(ctx, &records[i], delivered)
	}
	must(0, client.Flush(ctx))
	seconds := time.Since(begun).Seconds()
	if failed.Load() != 0 {
		must(0, fmt.Errorf("%d records were not delivered", failed.Load()))
	}
	fmt.Printf("{\"seconds\": %.9f}\n", seconds)
}

func consume(seeds []string, topic string, count, passes int) {
	var seconds float64
	var bytes int64
	for range passes {
		client := must(kgo.NewClient(
			kgo.SeedBrokers(seeds...),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
				topic: {0: kgo.NewOffset().AtStart()},
			}),
		))
		var begun time.Time
		for seen := 0; seen < count; {
			fetches := client.PollFetches(context.Background())
			if err := fetches.Err(); err != nil {
				must(0, err)
			}
			first := seen == 0
			if first {
				begun = time.Now() // what came before is the client's own start
			}
			fetches.EachRecord(func(record *kgo.Record) {
				seen++
				if !first {
					bytes += int64(len(record.Value))
				}
			})
		}
		seconds += time.Since(begun).Seconds()
		client.Close()
	}
	fmt.Printf("{\"seconds\": %.9f, \"bytes\": %d}\n", seconds, bytes)
}
