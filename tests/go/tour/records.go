package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

// franz-go is idempotent by default, which needs acks=all.
func producerOptions(s step) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[s.Codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	switch s.Acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !s.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	return options
}

// produce sends the records and returns them with the offsets they were given.
func produce(t *tour, ctx context.Context, s step) (any, error) {
	client, err := t.client(producerOptions(s)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var sent []*kgo.Record
	for _, each := range s.Records {
		r := &kgo.Record{Topic: s.Topic, Partition: each.Partition, Key: bytes(each.Key), Value: bytes(each.Value)}
		for name, value := range each.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		if each.Timestamp != 0 {
			r.Timestamp = time.UnixMilli(each.Timestamp)
		}
		sent = append(sent, r)
	}
	results := client.ProduceSync(ctx, sent...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	return plain(sent), nil
}

func plain(records []*kgo.Record) []record {
	found := []record{}
	for _, r := range records {
		each := record{
			Key: text(r.Key), Value: text(r.Value), Partition: r.Partition, Offset: r.Offset,
			Timestamp: r.Timestamp.UnixMilli(),
		}
		for _, header := range r.Headers {
			if each.Headers == nil {
				each.Headers = map[string]string{}
			}
			each.Headers[header.Key] = string(header.Value)
		}
		found = append(found, each)
	}
	return found
}

// read consumes one partition directly, from an offset or a timestamp, until count records came.
func read(t *tour, ctx context.Context, s step) (any, error) {
	from := kgo.NewOffset().At(s.Offset)
	if s.Timestamp != 0 {
		from = kgo.NewOffset().AfterMilli(s.Timestamp)
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Topic: {s.Partition: from}}),
	}
	if s.Committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := t.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return gather(ctx, client, s.Count)
}

// gather polls until it has count records; more may come along.
func gather(ctx context.Context, client *kgo.Client, count int) ([]record, error) {
	found := []record{}
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(found), count, err)
		}
		found = append(found, plain(fetches.Records())...)
	}
	return found, nil
}
