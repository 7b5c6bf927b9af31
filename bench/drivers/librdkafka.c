/* The librdkafka side of the bench: each command drives one workload and prints one JSON object.
 *
 *   librdkafka produce    BOOTSTRAP TOPIC COUNT BYTES   bulk, acks=all, one partition
 *   librdkafka consume    BOOTSTRAP TOPIC COUNT PASSES  bulk, from the beginning, PASSES times
 *   librdkafka sequential BOOTSTRAP TOPIC COUNT BYTES   one record in flight, acks=all
 *   librdkafka delivery   BOOTSTRAP TOPIC COUNT BYTES   produce to consume, one record at a time
 *   librdkafka transact   BOOTSTRAP TOPIC COUNT RECORDS so many transactions of RECORDS records
 *
 * It is written in C because a Python client spends more time per record than any broker does.
 * The library is the one inside confluent-kafka's wheel, which ships no header: the few
 * declarations below are those of its public, stable ABI. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;

typedef struct rd_kafka_message_s {
    int err;
    rd_kafka_topic_t *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private_data;
} rd_kafka_message_t;

enum { RD_KAFKA_PRODUCER, RD_KAFKA_CONSUMER };
#define OFFSET_BEGINNING (-2)

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *,
                                 void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
void rd_kafka_destroy(rd_kafka_t *);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
void rd_kafka_topic_destroy(rd_kafka_topic_t *);
int rd_kafka_produce(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t,
                     void *);
int rd_kafka_produce_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t *, int);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_outq_len(rd_kafka_t *);
int rd_kafka_flush(rd_kafka_t *, int);
int rd_kafka_consume_start(rd_kafka_topic_t *, int32_t, int64_t);
int rd_kafka_consume_stop(rd_kafka_topic_t *, int32_t);
rd_kafka_message_t *rd_kafka_consume(rd_kafka_topic_t *, int32_t, int);
ssize_t rd_kafka_consume_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t **, size_t);
void rd_kafka_message_destroy(rd_kafka_message_t *);
int rd_kafka_query_watermark_offsets(rd_kafka_t *, const char *, int32_t, int64_t *, int64_t *,
                                     int);
const char *rd_kafka_err2str(int);
int rd_kafka_last_error(void);
typedef struct rd_kafka_error_s rd_kafka_error_t;
const char *rd_kafka_error_string(const rd_kafka_error_t *);
rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *, int);
rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *);
rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *, int);

#define BATCH 1000
#define OUTSTANDING_MAX 400000
#define TIMEOUT_MS 15000
#define WARM_UP 200
#define TRANSACTED_BYTES 100

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != 0) fail(name, error);
}

static rd_kafka_t *client(int kind, rd_kafka_conf_t *conf) {
    char error[512];
    rd_kafka_t *rk = rd_kafka_new(kind, conf, error, sizeof error);
    if (rk == NULL) fail("rd_kafka_new", error);
    return rk;
}

static int undelivered;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    if (message->err) fail("delivery", rd_kafka_err2str(message->err));
    undelivered--;
}

static char *payload(size_t bytes) {
    char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) data[i] = (char)('a' + (i * 7) % 26);
    return data;
}

static rd_kafka_conf_t *configuration(const char *bootstrap) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "enable.metrics.push", "false"); /* not every peer offers it */
    set(conf, "log_level", "3");
    return conf;
}

static rd_kafka_conf_t *producer_configuration(const char *bootstrap) {
    rd_kafka_conf_t *conf = configuration(bootstrap);
    set(conf, "acks", "all");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return conf;
}

static void produce(const char *bootstrap, const char *topic_name, int count, size_t bytes) {
    rd_kafka_conf_t *conf = producer_configuration(bootstrap);
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "delivery.report.only.error", "true");
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name, NULL);
    int64_t low, before, after;
    int error = rd_kafka_query_watermark_offsets(rk, topic_name, 0, &low, &before, TIMEOUT_MS);
    if (error) fail("watermarks", rd_kafka_err2str(error)); /* and the connection is open now */
    rd_kafka_message_t *messages = calloc(BATCH, sizeof *messages);
    char *data = payload(bytes);
    double begun = now_s();
    for (int sent = 0; sent < count;) {
        int batch = count - sent < BATCH ? count - sent : BATCH;
        while (rd_kafka_outq_len(rk) > OUTSTANDING_MAX) rd_kafka_poll(rk, 1);
        for (int i = 0; i < batch; i++) {
            messages[i].payload = data;
            messages[i].len = bytes;
        }
        int taken = rd_kafka_produce_batch(topic, 0, 0, messages, batch);
        if (taken != batch) fail("produce_batch", "the queue is full");
        sent += batch;
    }
    if (rd_kafka_flush(rk, TIMEOUT_MS)) fail("flush", "timed out");
    double seconds = now_s() - begun;
    error = rd_kafka_query_watermark_offsets(rk, topic_name, 0, &low, &after, TIMEOUT_MS);
    if (error) fail("watermarks", rd_kafka_err2str(error));
    if (after - before != count) fail("produce", "the log did not grow by the records sent");
    printf("{\"seconds\": %.9f}\n", seconds);
}

static void consume(const char *bootstrap, const char *topic_name, int count, int passes) {
    rd_kafka_conf_t *conf = configuration(bootstrap);
    /* By default the client pauses a second whenever it holds 100,000 records. */
    set(conf, "queued.min.messages", "10000000");
    set(conf, "queued.max.messages.kbytes", "2000000");
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name, NULL);
    rd_kafka_message_t **messages = calloc(BATCH, sizeof *messages);
    double seconds = 0;
    int64_t bytes = 0;
    for (int pass = 0; pass < passes; pass++) {
        if (rd_kafka_consume_start(topic, 0, OFFSET_BEGINNING)) {
            fail("consume_start", rd_kafka_err2str(rd_kafka_last_error()));
        }
        double begun = 0;
        for (int seen = 0; seen < count;) {
            int batch = count - seen < BATCH ? count - seen : BATCH; /* it waits for them all */
            ssize_t got = rd_kafka_consume_batch(topic, 0, TIMEOUT_MS, messages, batch);
            if (got <= 0) fail("consume", "no records");
            if (seen == 0) begun = now_s(); /* what came before is the client's own start */
            for (ssize_t i = 0; i < got; i++) {
                if (messages[i]->err) fail("consume", rd_kafka_err2str(messages[i]->err));
                if (seen > 0) bytes += messages[i]->len;
                rd_kafka_message_destroy(messages[i]);
            }
            seen += got;
        }
        seconds += now_s() - begun;
        rd_kafka_consume_stop(topic, 0);
    }
    printf("{\"seconds\": %.9f, \"bytes\": %lld}\n", seconds, (long long)bytes);
}

static void print_latencies(const double *seconds, int count) {
    printf("{\"latencies_s\": [");
    for (int i = 0; i < count; i++) printf("%s%.9f", i ? ", " : "", seconds[i]);
    printf("]}\n");
}

static rd_kafka_topic_t *unlingering_producer(rd_kafka_t **rk, const char *bootstrap,
                                              const char *topic_name) {
    rd_kafka_conf_t *conf = producer_configuration(bootstrap);
    set(conf, "linger.ms", "0");
    *rk = client(RD_KAFKA_PRODUCER, conf);
    return rd_kafka_topic_new(*rk, topic_name, NULL);
}

static void sequential(const char *bootstrap, const char *topic_name, int count, size_t bytes) {
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic = unlingering_producer(&rk, bootstrap, topic_name);
    double *latencies = calloc(count, sizeof *latencies);
    char *data = payload(bytes);
    for (int i = -WARM_UP; i < count; i++) {
        double begun = now_s();
        undelivered = 1;
        if (rd_kafka_produce(topic, 0, 0, data, bytes, NULL, 0, NULL)) {
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        }
        while (undelivered) rd_kafka_poll(rk, TIMEOUT_MS);
        if (i >= 0) latencies[i] = now_s() - begun;
    }
    print_latencies(latencies, count);
}

static void delivery(const char *bootstrap, const char *topic_name, int count, size_t bytes) {
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic = unlingering_producer(&rk, bootstrap, topic_name);
    rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, configuration(bootstrap));
    rd_kafka_topic_t *consumed = rd_kafka_topic_new(consumer, topic_name, NULL);
    double *latencies = calloc(count, sizeof *latencies);
    char *data = payload(bytes);
    int64_t low, high;
    int error = rd_kafka_query_watermark_offsets(rk, topic_name, 0, &low, &high, TIMEOUT_MS);
    if (error) fail("watermarks", rd_kafka_err2str(error));
    if (rd_kafka_consume_start(consumed, 0, high)) {
        fail("consume_start", rd_kafka_err2str(rd_kafka_last_error()));
    }
    for (int i = -WARM_UP; i < count; i++) {
        double begun = now_s();
        undelivered = 1;
        if (rd_kafka_produce(topic, 0, 0, data, bytes, NULL, 0, NULL)) {
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        }
        rd_kafka_message_t *message = rd_kafka_consume(consumed, 0, TIMEOUT_MS);
        double seconds = now_s() - begun;
        if (message == NULL) fail("consume", "no record");
        if (message->err) fail("consume", rd_kafka_err2str(message->err));
        if (message->offset != high + i + WARM_UP) fail("consume", "an unexpected offset");
        rd_kafka_message_destroy(message);
        while (undelivered) rd_kafka_poll(rk, TIMEOUT_MS);
        if (i >= 0) latencies[i] = seconds;
    }
    print_latencies(latencies, count);
}

static void check(const char *what, const rd_kafka_error_t *error) {
    if (error) fail(what, rd_kafka_error_string(error));
}

static void transact(const char *bootstrap, const char *topic_name, int count, int records) {
    rd_kafka_conf_t *conf = producer_configuration(bootstrap);
    set(conf, "linger.ms", "0");
    set(conf, "transactional.id", topic_name);
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name, NULL);
    char *data = payload(TRANSACTED_BYTES);
    check("init", rd_kafka_init_transactions(rk, TIMEOUT_MS));
    double begun = 0;
    for (int i = -count / 10; i < count; i++) {
        if (i == 0) begun = now_s();
        check("begin", rd_kafka_begin_transaction(rk));
        for (int n = 0; n < records; n++) {
            if (rd_kafka_produce(topic, 0, 0, data, TRANSACTED_BYTES, NULL, 0, NULL)) {
                fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
            }
        }
        check("commit", rd_kafka_commit_transaction(rk, TIMEOUT_MS));
    }
    printf("{\"seconds\": %.9f}\n", now_s() - begun);
}

int main(int argc, char **argv) {
    if (argc != 6) fail("usage", "COMMAND BOOTSTRAP TOPIC COUNT BYTES|PASSES|RECORDS");
    const char *command = argv[1];
    int count = atoi(argv[4]), number = atoi(argv[5]);
    if (strcmp(command, "produce") == 0) {
        produce(argv[2], argv[3], count, number);
    } else if (strcmp(command, "consume") == 0) {
        consume(argv[2], argv[3], count, number);
    } else if (strcmp(command, "sequential") == 0) {
        sequential(argv[2], argv[3], count, number);
    } else if (strcmp(command, "delivery") == 0) {
        delivery(argv[2], argv[3], count, number);
    } else if (strcmp(command, "transact") == 0) {
        transact(argv[2], argv[3], count, number);
    } else {
        fail(command, "no such command");
    }
    fflush(stdout);
    _Exit(0); /* closing the client politely takes time that nobody measures */
}
