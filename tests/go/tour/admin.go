package main

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

// withAdmin runs one request of the admin client.
func withAdmin(t *tour, request func(*kadm.Client) (any, error)) (any, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return request(kadm.NewClient(client))
}

func createTopic(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		configs := map[string]*string{}
		for name, value := range s.Configs {
			configs[name] = &value
		}
		created, err := admin.CreateTopic(ctx, s.Partitions, s.Replicas, configs, s.Topic)
		if err != nil {
			return nil, err
		}
		return map[string]any{"partitions": created.NumPartitions, "replicas": created.ReplicationFactor}, created.Err
	})
}

func addPartitions(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		answers, err := admin.UpdatePartitions(ctx, int(s.Partitions), s.Topic)
		if err != nil {
			return nil, err
		}
		return nil, answers.Error()
	})
}

func deleteTopic(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		deleted, err := admin.DeleteTopic(ctx, s.Topic)
		if err != nil {
			return nil, err
		}
		return nil, deleted.Err
	})
}

// topics lists the topics that are not internal, with leader, replicas and ISR of each partition.
func topics(t *tour, ctx context.Context, _ step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		details, err := admin.ListTopics(ctx)
		if err != nil {
			return nil, err
		}
		found := map[string]any{}
		for _, topic := range details.Sorted() {
			partitions := []any{}
			for _, each := range topic.Partitions.Sorted() {
				partitions = append(partitions, map[string]any{
					"leader": each.Leader, "replicas": each.Replicas, "isr": each.ISR,
				})
			}
			found[topic.Topic] = partitions
		}
		return found, nil
	})
}

// offsets returns each partition's first and next offset, and the first at or after a timestamp.
func offsets(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		found := map[string]map[string]int64{}
		lists := map[string]func() (kadm.ListedOffsets, error){
			"start": func() (kadm.ListedOffsets, error) { return admin.ListStartOffsets(ctx, s.Topic) },
			"end":   func() (kadm.ListedOffsets, error) { return admin.ListEndOffsets(ctx, s.Topic) },
			"at": func() (kadm.ListedOffsets, error) {
				return admin.ListOffsetsAfterMilli(ctx, s.Timestamp, s.Topic)
			},
			"max_timestamp": func() (kadm.ListedOffsets, error) {
				return admin.ListMaxTimestampOffsets(ctx, s.Topic)
			},
		}
		for name, list := range lists {
			listed, err := list()
			if err == nil {
				err = listed.Error()
			}
			if err != nil {
				return nil, err
			}
			found[name] = map[string]int64{}
			for partition, each := range listed[s.Topic] {
				found[name][strconv.Itoa(int(partition))] = each.Offset
			}
		}
		return found, nil
	})
}

func configs(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		described, err := admin.DescribeTopicConfigs(ctx, s.Topic)
		if err != nil {
			return nil, err
		}
		resource, err := described.On(s.Topic, nil)
		if err != nil {
			return nil, err
		}
		found := map[string]any{}
		for _, each := range resource.Configs {
			found[each.Key] = map[string]any{"value": each.Value, "source": each.Source.String()}
		}
		return found, resource.Err
	})
}

func setConfigs(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		var changes []kadm.AlterConfig
		for name, value := range s.Configs {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		}
		answers, err := admin.AlterTopicConfigs(ctx, changes, s.Topic)
		if err != nil {
			return nil, err
		}
		answer, err := answers.On(s.Topic, nil)
		if err != nil {
			return nil, err
		}
		return nil, answer.Err
	})
}

// deleteRecords deletes what lies before an offset and returns the low watermark.
func deleteRecords(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		var before kadm.Offsets
		before.AddOffset(s.Topic, s.Partition, s.Offset, -1)
		answers, err := admin.DeleteRecords(ctx, before)
		if err != nil {
			return nil, err
		}
		answer, _ := answers.Lookup(s.Topic, s.Partition)
		return answer.LowWatermark, answer.Err
	})
}

func group(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		described, err := admin.DescribeGroups(ctx, s.Group)
		if err != nil {
			return nil, err
		}
		found := described[s.Group]
		members := []any{}
		for _, each := range found.Members {
			assignment := []int32{}
			if consumer, is := each.Assigned.AsConsumer(); is {
				for _, topic := range consumer.Topics {
					assignment = append(assignment, topic.Partitions...)
				}
			}
			members = append(members, map[string]any{
				"client_id": each.ClientID, "instance_id": each.InstanceID, "partitions": assignment,
			})
		}
		return map[string]any{
			"state": found.State, "protocol_type": found.ProtocolType, "protocol": found.Protocol,
			"coordinator": found.Coordinator.NodeID, "members": members,
		}, found.Err
	})
}

func groups(t *tour, ctx context.Context, _ step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		listed, err := admin.ListGroups(ctx)
		if err != nil {
			return nil, err
		}
		found := map[string]string{}
		for _, each := range listed.Sorted() {
			found[each.Group] = each.State
		}
		return found, nil
	})
}

func committed(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		fetched, err := admin.FetchOffsets(ctx, s.Group)
		if err != nil {
			return nil, err
		}
		found := map[string]int64{}
		for partition, each := range fetched[s.Topic] {
			found[strconv.Itoa(int(partition))] = each.At
		}
		return found, fetched.Error()
	})
}

func deleteGroup(t *tour, ctx context.Context, s step) (any, error) {
	return withAdmin(t, func(admin *kadm.Client) (any, error) {
		deleted, err := admin.DeleteGroup(ctx, s.Group)
		if err != nil {
			return nil, err
		}
		return nil, deleted.Err
	})
}
