// The kafkajs client, step by step, over a pipe of JSON lines.
//
// Each line is {"op": NAME, …}; the answer is {"result": …} or {"error": TEXT}, where TEXT begins
// with Kafka's name of the error if it has one. The first step is {"op": "connect"}.

import readline from "node:readline";
import kafkajs from "kafkajs";

const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = kafkajs;

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };
const WAIT_MS = 30_000;

let kafka;
let admin;
const members = new Map();

// What one group member owns and what it was handed, and who waits for either to change.
class Member {
  constructor(consumer, topic) {
    this.consumer = consumer;
    this.topic = topic;
    this.owned = [];
    this.records = [];
    this.waiters = new Set();
  }

  changed() {
    for (const waiter of [...this.waiters]) waiter();
  }

  // The first value that `look` returns other than undefined.
  until(look, what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiters.delete(check);
        reject(new Error(`${what}: owned ${this.owned}, ${this.records.length} records`));
      }, WAIT_MS);
      const check = () => {
        const found = look();
        if (found === undefined) return;
        clearTimeout(timer);
        this.waiters.delete(check);
        resolve(found);
      };
      this.waiters.add(check);
      check();
    });
  }
}

const member = (name) => {
  if (!members.has(name)) throw new Error(`no member ${name} is open`);
  return members.get(name);
};

const plain = (partition, message) => ({
  partition,
  offset: Number(message.offset),
  timestamp_ms: Number(message.timestamp),
  key: message.key === null ? null : message.key.toString(),
  value: message.value === null ? null : message.value.toString(),
  headers: Object.fromEntries(
    Object.entries(message.headers ?? {}).map(([name, value]) => [name, value.toString()]),
  ),
});

const numbers = (offsets, field) =>
  Object.fromEntries(offsets.map((each) => [each.partition, Number(each[field])]));

const operations = {
  async connect({ bootstrap }) {
    kafka = new Kafka({
      clientId: "tour",
      brokers: bootstrap,
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 50, retries: 8 },
    });
    admin = kafka.admin();
    await admin.connect();
  },

  // -- records --

  async produce({ topic, records, acks = -1, codec = "none", idempotent = false }) {
    const producer = kafka.producer({
      idempotent,
      allowAutoTopicCreation: false,
      maxInFlightRequests: 1,
    });
    await producer.connect();
    try {
      const messages = records.map(({ timestamp_ms, ...record }) =>
        timestamp_ms === undefined ? record : { ...record, timestamp: String(timestamp_ms) },
      );
      const answers = await producer.send({ topic, messages, acks, compression: CODECS[codec] });
      return (answers ?? []).map((each) => ({
        partition: each.partition,
        base_offset: Number(each.baseOffset),
      }));
    } finally {
      await producer.disconnect();
    }
  },

  // -- groups --

  async join({ name, group, topic, seek, isolation }) {
    const consumer = kafka.consumer({
      groupId: group,
      heartbeatInterval: 100,
      sessionTimeout: 10_000,
      rebalanceTimeout: 10_000,
      readUncommitted: isolation !== "read_committed",
      maxWaitTimeInMs: 200,
    });
    const self = new Member(consumer, topic);
    members.set(name, self);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      self.owned = [...(payload.memberAssignment[topic] ?? [])].sort((a, b) => a - b);
      self.changed();
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        self.records.push(plain(partition, message));
        self.changed();
      },
    });
    if (seek !== undefined) consumer.seek({ topic, partition: 0, offset: String(seek) });
  },

  async assigned({ name, count }) {
    const self = member(name);
    return self.until(
      () => (self.owned.length === count ? self.owned : undefined),
      `waiting for ${count} partitions`,
    );
  },

  async poll({ name, count }) {
    const self = member(name);
    return self.until(
      () => (self.records.length >= count ? self.records.splice(0) : undefined),
      `waiting for ${count} records`,
    );
  },

  async seek({ name, offset }) {
    const { consumer, topic } = member(name);
    consumer.seek({ topic, partition: 0, offset: String(offset) });
  },

  async commit({ name, offsets }) {
    const { consumer, topic } = member(name);
    await consumer.commitOffsets(
      Object.entries(offsets).map(([partition, offset]) => ({
        topic,
        partition: Number(partition),
        offset: String(offset),
      })),
    );
  },

  async leave({ name }) {
    const { consumer } = member(name);
    members.delete(name);
    await consumer.disconnect();
  },

  // -- administration --

  async create_topic({ topic, partitions, replicas, configs = {} }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    return admin.createTopics({
      topics: [
        { topic, numPartitions: partitions, replicationFactor: replicas, configEntries },
      ],
    });
  },

  async add_partitions({ topic, partitions }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] });
  },

  async delete_topic({ topic }) {
    await admin.deleteTopics({ topics: [topic] });
  },

  async topics() {
    return admin.listTopics();
  },

  async topic({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    return topics[0].partitions
      .sort((a, b) => a.partitionId - b.partitionId)
      .map(({ leader, replicas, isr }) => ({ leader, replicas, isr }));
  },

  async cluster() {
    const { brokers, controller, clusterId } = await admin.describeCluster();
    return { brokers: brokers.map((each) => each.nodeId), controller, cluster_id: clusterId };
  },

  async offsets({ topic, timestamp_ms }) {
    const listed = await admin.fetchTopicOffsets(topic);
    const found = { start: numbers(listed, "low"), end: numbers(listed, "high") };
    if (timestamp_ms !== undefined) {
      const at = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms);
      found.at = numbers(at, "offset");
    }
    return found;
  },

  async delete_records({ topic, offset }) {
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] });
  },

  async configs({ topic }) {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    });
    return Object.fromEntries(
      resources[0].configEntries.map((each) => [each.configName, each.configValue]),
    );
  },

  async set_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    });
  },

  async group({ group }) {
    const { groups } = await admin.describeGroups([group]);
    const { state, protocol, protocolType, members: found } = groups[0];
    return { state, protocol, protocol_type: protocolType, members: found.length };
  },

  async groups() {
    const { groups } = await admin.listGroups();
    return groups.map((each) => each.groupId);
  },

  async committed({ group, topic }) {
    const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    return numbers(partitions, "offset");
  },

  async reset_committed({ group, topic, earliest }) {
    await admin.resetOffsets({ groupId: group, topic, earliest });
  },

  async set_committed({ group, topic, offset }) {
    await admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: String(offset) }] });
  },

  async delete_group({ group }) {
    await admin.deleteGroups([group]);
  },
};

// kafkajs puts what the broker said into a cause, or into one error of a list.
const describe = (error) => {
  for (let each = error; each; each = each.cause ?? each.errors?.[0] ?? each.groups?.[0]?.error) {
    if (each.type) return `${each.type}: ${each.message}`;
  }
  return String(error.message ?? error);
};

const answer = async (line) => {
  try {
    const { op, ...step } = JSON.parse(line);
    if (!(op in operations)) return { error: `no such step: ${op}` };
    return { result: (await operations[op](step)) ?? null };
  } catch (error) {
    return { error: describe(error) };
  }
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
}
await Promise.allSettled([...members.values()].map((each) => each.consumer.disconnect()));
process.exit(0);
