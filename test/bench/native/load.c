/*
 * The load generator of the bench: many connections from one thread that costs next to nothing. It checks every answer, and
 * reads at the window's start and end what CPU time the named processes took. Prints one line of JSON. Linux.
 *
 *   load --port P[,P...] --body FILE [--path PATH] [--header LINE]... [--connections N] [--ramp-ms N] [--warm-ms N]
 *        [--warm-requests N] [--window-ms N] [--stream CHUNKS] [--once] [--rate PER_SECOND] [--finish-ms N]
 *        [--tokens FILE] [--process NAME=PID]...
 *
 * The window begins after --warm-ms, and later while fewer than --warm-requests were answered: up to four times as late.
 * Without --body it asks with GET. With --stream it expects so many chunks of the far end's and `[DONE]` or `message_stop`; --once asks one
 * request on each connection, and --finish-ms waits so long after the window for those to come to their end. With --rate
 * requests start at that pace, else as soon as a connection is free. With --tokens each request has the next line of the file as
 * its bearer token; the lines are of one length.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 4000000 /* of half a microsecond */
#define READ_BYTES (256 * 1024)
#define PARTIAL_BYTES (64 * 1024)
#define MANY 64
#define PATIENCE 4 /* times the warm-up, for as many requests as were asked for */

enum state { UNOPENED, OPENING, FREE, ASKING, SPENT };

struct connection {
  int fd;
  enum state state;
  int port;
  size_t sent;
  uint64_t asked_ns;
  int heard, saw_event;
  /* The answer's head, and then what is not yet a whole event. */
  char *partial;
  size_t partial_length;
  int in_body, status, chunked, closes;
  long left;         /* of the body or of the chunk of it; -1 while a size line is read */
  char size_line[24];
  int size_length;
  long chunks;
  uint64_t stamp_ns;
  int stamp_digits;
  int done, broken;
};

struct spread {
  uint32_t *bucket;
  uint64_t count, max_ns;
};

struct process {
  const char *name;
  int pid;
  uint64_t cpu_ns[2];
  long rss_kb[2];
};

static int ports[MANY], port_count;
static char *request;
static size_t request_length;
static char *tokens, *token_at;
static size_t token_length, token_count, tokens_used;
static long connection_count = 1, ramp_ms, warm_ms = 500, warm_requests, window_ms = 1000, finish_ms, stream_chunks = -1;
static double rate;
static int once;
static struct connection *connections;
static int epoll;
static int in_window, in_finish;
static struct process processes[MANY];
static int process_count;
static struct spread total, first_byte, one_way, refused_total;
static uint64_t answers, requests, chunks, bad, late, reads, opened, whole_streams, broken_streams;
static uint64_t statuses[600];
static char first_bad[320];
static struct connection **free_ones;
static long free_count;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note(struct spread *in, uint64_t took_ns) {
  if (!in_window) return;
  uint64_t bucket = took_ns / 500;
  in->bucket[bucket < BUCKETS ? bucket : BUCKETS - 1] += 1;
  in->count += 1;
  if (took_ns > in->max_ns) in->max_ns = took_ns;
}

static double at_share(struct spread *of, double share) {
  uint64_t rank = (uint64_t)((double)of->count * share), seen = 0;
  for (long n = 0; n < BUCKETS; n += 1)
    if ((seen += of->bucket[n]) > rank) return (double)n / 2;
  return 0;
}

static uint64_t cpu_ns(int pid) {
  char path[320];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  if (!tasks) return 0;
  uint64_t sum = 0;
  for (struct dirent *task; (task = readdir(tasks));) {
    if (task->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, task->d_name);
    FILE *file = fopen(path, "r");
    unsigned long long ns = 0;
    if (file && fscanf(file, "%llu", &ns) == 1) sum += ns;
    if (file) fclose(file);
  }
  closedir(tasks);
  return sum;
}

static long rss_kb(int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/statm", pid);
  FILE *file = fopen(path, "r");
  long pages = 0;
  if (file && fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What the host took from this machine, and all of its time, in ticks. */
static void machine_time(uint64_t *stolen, uint64_t *all) {
  unsigned long long part[8] = {0};
  FILE *file = fopen("/proc/stat", "r");
  *stolen = *all = 0;
  if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", part, part + 1, part + 2, part + 3, part + 4,
                     part + 5, part + 6, part + 7) == 8) {
    for (int n = 0; n < 8; n += 1) *all += part[n];
    *stolen = part[7];
  }
  if (file) fclose(file);
}

static void watch(struct connection *c, uint32_t what, int how) {
  struct epoll_event event = {.events = what, .data.ptr = c};
  epoll_ctl(epoll, how, c->fd, &event);
}

static void complain(struct connection *c, const char *what) {
  if (!first_bad[0]) snprintf(first_bad, sizeof first_bad, "%s (status %d, %ld chunks)", what, c->status, c->chunks);
  c->broken = 1;
}

static void open_connection(struct connection *c) {
  static const int one = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)c->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  c->state = OPENING;
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS) {
    complain(c, "cannot connect");
    bad += 1;
    c->state = SPENT;
    close(c->fd);
    return;
  }
  watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

static void now_free(struct connection *c) {
  c->state = FREE;
  free_ones[free_count++] = c;
}

static void reopen(struct connection *c) {
  close(c->fd);
  open_connection(c);
}

static void send_request(struct connection *c) {
  while (c->sent < request_length) {
    ssize_t wrote = send(c->fd, request + c->sent, request_length - c->sent, MSG_NOSIGNAL);
    if (wrote > 0) {
      c->sent += (size_t)wrote;
      if (c->sent == request_length) watch(c, EPOLLIN, EPOLL_CTL_MOD);
    } else if (errno == EAGAIN) {
      watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      return;
    } else {
      return;
    }
  }
}

static void ask(struct connection *c, uint64_t at_ns) {
  c->state = ASKING;
  c->asked_ns = at_ns;
  c->sent = 0;
  c->heard = c->saw_event = c->in_body = c->status = c->done = c->broken = 0;
  c->chunks = 0;
  c->stamp_ns = 0;
  c->stamp_digits = 0;
  c->partial_length = 0;
  if (tokens) memcpy(token_at, tokens + (tokens_used++ % token_count) * (token_length + 1), token_length);
  send_request(c);
}

static void answered(struct connection *c, uint64_t at_ns) {
  if (c->status == 200) {
    if (stream_chunks >= 0 && (c->chunks != stream_chunks || !c->done)) complain(c, "cut short");
    if (stream_chunks >= 0) *(c->broken ? &broken_streams : &whole_streams) += 1;
    if (in_window && !c->broken) requests += 1;
    note(&total, at_ns - c->asked_ns);
  } else {
    if (once) complain(c, "refused");
    note(&refused_total, at_ns - c->asked_ns);
  }
  answers += 1;
  if (in_window) statuses[c->status < 600 ? c->status : 599] += 1;
  if (c->broken) bad += 1;
  if (once) {
    c->state = SPENT;
    close(c->fd);
  } else if (c->closes) {
    reopen(c);
  } else {
    now_free(c);
  }
}

static void broke_off(struct connection *c) {
  complain(c, c->in_body ? "broken off within the answer" : "broken off before an answer");
  if (stream_chunks >= 0) broken_streams += 1;
  bad += 1;
  if (once) {
    c->state = SPENT;
    close(c->fd);
  } else {
    reopen(c);
  }
}

static void event(struct connection *c, const char *at, size_t length, uint64_t at_ns) {
  static const char chat_key[] = "\"content\":\"", message_key[] = "\"text_delta\",\"text\":\"";
  if (length > 0 && at[0] == ':') return;
  if (!c->saw_event) {
    c->saw_event = 1;
    note(&first_byte, at_ns - c->asked_ns);
  }
  if (c->done) complain(c, "more after [DONE]");
  if ((length >= 12 && memcmp(at, "data: [DONE]", 12) == 0) || (length >= 19 && memcmp(at, "event: message_stop", 19) == 0)) {
    c->done = 1;
    return;
  }
  if (memmem(at, length, "\"error\"", 7)) {
    char said[200];
    size_t some = length < sizeof said - 1 ? length : sizeof said - 1;
    for (size_t n = 0; n < some; n += 1) said[n] = at[n] == '"' || at[n] == '\\' || at[n] < ' ' ? '\'' : at[n];
    said[some] = 0;
    complain(c, said);
  }
  size_t key_length = sizeof chat_key - 1;
  const char *content = memmem(at, length, chat_key, key_length);
  if (!content) content = memmem(at, length, message_key, key_length = sizeof message_key - 1);
  if (!content) return;
  /* A full line joins texts and cuts them elsewhere, so a delta may hold several stamps of 20 digits, or a part of one. */
  for (content += key_length; content < at + length && *content >= '0' && *content <= '9'; content += 1) {
    c->stamp_ns = c->stamp_ns * 10 + (uint64_t)(*content - '0');
    c->stamp_digits += 1;
    if (c->stamp_digits < 20) continue;
    c->chunks += 1;
    if (in_window) chunks += 1;
    note(&one_way, at_ns - c->stamp_ns);
    c->stamp_ns = 0;
    c->stamp_digits = 0;
  }
}

static void body(struct connection *c, const char *at, size_t length, uint64_t at_ns) {
  if (stream_chunks < 0 || c->status != 200) return;
  while (length > 0) {
    if (c->partial_length == 0) {
      const char *end = memmem(at, length, "\n\n", 2);
      if (end) {
        event(c, at, (size_t)(end - at), at_ns);
        length -= (size_t)(end - at) + 2;
        at = end + 2;
        continue;
      }
    }
    /* An event in several pieces: up to its end, or all there is. */
    size_t take = 0;
    int ends = 0;
    while (take < length && !ends) {
      char before = take > 0 ? at[take - 1] : c->partial_length > 0 ? c->partial[c->partial_length - 1] : 0;
      ends = at[take] == '\n' && before == '\n';
      take += 1;
    }
    if (c->partial_length + take > PARTIAL_BYTES) {
      complain(c, "an event without an end");
      return;
    }
    memcpy(c->partial + c->partial_length, at, take);
    c->partial_length += take;
    at += take;
    length -= take;
    if (!ends) return;
    event(c, c->partial, c->partial_length - 2, at_ns);
    c->partial_length = 0;
  }
}

static void head(struct connection *c) {
  c->partial[c->partial_length] = 0;
  c->status = atoi(c->partial + 9);
  char *length_at = strcasestr(c->partial, "\r\ncontent-length:");
  c->chunked = strcasestr(c->partial, "\r\ntransfer-encoding: chunked") != NULL;
  c->closes = strcasestr(c->partial, "\r\nconnection: close") != NULL;
  c->left = c->chunked ? -1 : length_at ? strtol(length_at + 17, NULL, 10) : 0;
  c->size_length = 0;
  c->in_body = 1;
  c->partial_length = 0;
}

/* Returns how much of it was taken; the answer may have ended before the end of what came. */
static void take(struct connection *c, const char *at, size_t length, uint64_t at_ns) {
  if (!c->heard) {
    c->heard = 1;
    if (stream_chunks < 0) note(&first_byte, at_ns - c->asked_ns);
  }
  while (c->state == ASKING) {
    if (!c->in_body) {
      if (length == 0) return;
      size_t had = c->partial_length, more = length < PARTIAL_BYTES - 1 - had ? length : PARTIAL_BYTES - 1 - had;
      memcpy(c->partial + had, at, more);
      char *end = memmem(c->partial, had + more, "\r\n\r\n", 4);
      if (!end) {
        c->partial_length = had + more;
        if (more < length) complain(c, "a head without an end");
        return;
      }
      c->partial_length = (size_t)(end - c->partial) + 4;
      at += c->partial_length - had;
      length -= c->partial_length - had;
      head(c);
    } else if (!c->chunked) {
      size_t some = length < (size_t)c->left ? length : (size_t)c->left;
      body(c, at, some, at_ns);
      at += some;
      length -= some;
      c->left -= (long)some;
      if (c->left == 0) answered(c, at_ns);
      if (length == 0) return;
    } else if (c->left > 2) {
      size_t some = length < (size_t)c->left - 2 ? length : (size_t)c->left - 2;
      if (some == 0) return;
      body(c, at, some, at_ns);
      at += some;
      length -= some;
      c->left -= (long)some;
    } else if (c->left > 0) { /* the line's end behind a chunk */
      if (length == 0) return;
      at += 1;
      length -= 1;
      c->left -= 1;
      if (c->left == 0) c->left = -1, c->size_length = 0;
    } else {
      if (length == 0) return;
      char byte = *at;
      at += 1;
      length -= 1;
      if (byte != '\n') {
        if (c->size_length < (int)sizeof c->size_line - 1) c->size_line[c->size_length++] = byte;
        continue;
      }
      c->size_line[c->size_length] = 0;
      if (c->left == -2) { /* the empty line behind the last chunk */
        if (c->size_length <= 1) answered(c, at_ns);
        c->size_length = 0;
        continue;
      }
      c->left = strtol(c->size_line, NULL, 16);
      c->size_length = 0;
      c->left = c->left == 0 ? -2 : c->left + 2;
    }
  }
}

static void receive(struct connection *c) {
  static char buffer[READ_BYTES];
  while (c->state == ASKING || c->state == FREE) {
    ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      if (c->state == ASKING) {
        broke_off(c);
      } else {
        for (long n = 0; n < free_count; n += 1)
          if (free_ones[n] == c) free_ones[n--] = free_ones[--free_count];
        reopen(c);
      }
      return;
    }
    if (in_window) reads += 1;
    take(c, buffer, (size_t)got, now_ns());
    if ((size_t)got < sizeof buffer) return;
  }
}

static void print_spread(const char *name, struct spread *of) {
  if (of->count == 0) return;
  printf(",\"%s\":{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f,\"count\":%llu}", name, at_share(of, 0.5), at_share(of, 0.99),
         (double)of->max_ns / 1e3, (unsigned long long)of->count);
}

static char *contents(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) < 0) {
    perror(path);
    exit(1);
  }
  *length = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  if (!text || fread(text, 1, *length, file) != *length) {
    perror(path);
    exit(1);
  }
  fclose(file);
  text[*length] = 0;
  return text;
}

static void usage(void) {
  fprintf(stderr, "usage: load --port P[,P...] --body FILE [--stream CHUNKS] ... (see the head of load.c)\n");
  exit(2);
}

int main(int count, char **words) {
  static const struct option options[] = {{"port", 1, 0, 'p'},      {"path", 1, 0, 'u'},      {"header", 1, 0, 'h'},
                                          {"body", 1, 0, 'b'},      {"connections", 1, 0, 'c'}, {"ramp-ms", 1, 0, 'r'},
                                          {"warm-ms", 1, 0, 'w'},   {"window-ms", 1, 0, 'd'}, {"stream", 1, 0, 's'},
                                          {"once", 0, 0, 'o'},      {"rate", 1, 0, 'R'},      {"finish-ms", 1, 0, 'f'},
                                          {"process", 1, 0, 'P'},   {"tokens", 1, 0, 't'},    {"warm-requests", 1, 0, 'W'},
                                          {0, 0, 0, 0}};
  const char *path = "/v1/chat/completions", *body_file = NULL, *token_file = NULL;
  char headers[8192] = "";
  for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
    switch (option) {
      case 'p':
        for (char *port = strtok(optarg, ","); port && port_count < MANY; port = strtok(NULL, ",")) ports[port_count++] = atoi(port);
        break;
      case 'u': path = optarg; break;
      case 'h': snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\r\n", optarg); break;
      case 'b': body_file = optarg; break;
      case 'c': connection_count = atol(optarg); break;
      case 'r': ramp_ms = atol(optarg); break;
      case 'w': warm_ms = atol(optarg); break;
      case 'W': warm_requests = atol(optarg); break;
      case 'd': window_ms = atol(optarg); break;
      case 's': stream_chunks = atol(optarg); break;
      case 'o': once = 1; break;
      case 'R': rate = atof(optarg); break;
      case 't': token_file = optarg; break;
      case 'f': finish_ms = atol(optarg); break;
      case 'P': {
        char *is = strchr(optarg, '=');
        if (!is || process_count == MANY) usage();
        *is = 0;
        processes[process_count].name = optarg;
        processes[process_count++].pid = atoi(is + 1);
        break;
      }
      default: usage();
    }
  }
  if (port_count == 0) usage();
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);

  size_t body_length = 0, tokens_length = 0;
  char *body_text = body_file ? contents(body_file, &body_length) : NULL;
  if (token_file) {
    tokens = contents(token_file, &tokens_length);
    token_length = strcspn(tokens, "\n");
    token_count = tokens_length / (token_length + 1);
    if (token_count == 0) usage();
  }
  request = malloc(16384 + body_length);
  request_length = (size_t)sprintf(request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", body_file ? "POST" : "GET", path, headers);
  if (tokens) {
    request_length += (size_t)sprintf(request + request_length, "Authorization: Bearer ");
    token_at = request + request_length;
    request_length += (size_t)sprintf(request + request_length, "%.*s\r\n", (int)token_length, tokens);
  }
  if (body_file)
    request_length += (size_t)sprintf(request + request_length, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_length);
  request_length += (size_t)sprintf(request + request_length, "\r\n");
  if (body_length) memcpy(request + request_length, body_text, body_length);
  request_length += body_length;

  for (struct spread **each = (struct spread *[]){&total, &first_byte, &one_way, &refused_total, NULL}; *each; each += 1)
    (*each)->bucket = calloc(BUCKETS, sizeof(uint32_t));
  connections = calloc((size_t)connection_count + 1, sizeof *connections);
  free_ones = calloc((size_t)connection_count + 1, sizeof *free_ones);
  for (long n = 0; n < connection_count; n += 1) {
    connections[n].port = ports[n % port_count];
    connections[n].partial = malloc(PARTIAL_BYTES);
  }
  epoll = epoll_create1(EPOLL_CLOEXEC);
  for (int n = 0; n < process_count; n += 1) processes[n].rss_kb[0] = rss_kb(processes[n].pid);

  uint64_t begun = now_ns(), starts = begun + (uint64_t)(ramp_ms + warm_ms) * 1000000u,
           starts_at_last = begun + (uint64_t)(ramp_ms + PATIENCE * warm_ms) * 1000000u, ends = 0, stops = 0;
  uint64_t next_ask = begun, stolen[2] = {0}, all[2] = {0}, window_began = 0, window_ended = 0;
  long unfinished = 0;
  static struct epoll_event ready_ones[1024];
  for (;;) {
    uint64_t now = now_ns();
    int is_warm = now >= starts && (answers >= (uint64_t)warm_requests || now >= starts_at_last);
    if (!in_window && !in_finish && is_warm) {
      ends = now + (uint64_t)window_ms * 1000000u;
      stops = ends + (uint64_t)finish_ms * 1000000u;
      for (int n = 0; n < process_count; n += 1) processes[n].cpu_ns[0] = cpu_ns(processes[n].pid);
      machine_time(&stolen[0], &all[0]);
      window_began = now_ns();
      in_window = 1;
    }
    if (in_window && now >= ends) {
      window_ended = now_ns();
      for (int n = 0; n < process_count; n += 1) {
        processes[n].cpu_ns[1] = cpu_ns(processes[n].pid);
        processes[n].rss_kb[1] = rss_kb(processes[n].pid);
      }
      machine_time(&stolen[1], &all[1]);
      in_window = 0;
      in_finish = 1;
    }
    if (in_finish) {
      unfinished = 0;
      for (long n = 0; n < connection_count; n += 1) unfinished += connections[n].state == ASKING;
      if (unfinished == 0 || now >= stops) break;
    }
    while (opened < (uint64_t)connection_count &&
           now >= begun + (uint64_t)ramp_ms * 1000000u * opened / (uint64_t)connection_count)
      open_connection(&connections[opened++]);
    while (!in_finish && free_count > 0 && (rate == 0 || now >= next_ask)) {
      struct connection *c = free_ones[--free_count];
      ask(c, rate == 0 ? now : next_ask);
      if (rate > 0) next_ask += (uint64_t)(1e9 / rate);
    }
    if (rate > 0 && free_count == 0 && now > next_ask + 1000000000u) {
      late += 1;
      next_ask = now;
    }
    int ready = epoll_wait(epoll, ready_ones, 1024, rate > 0 && rate > 2000 ? 0 : 1);
    for (int n = 0; n < ready; n += 1) {
      struct connection *c = ready_ones[n].data.ptr;
      if (c->state == SPENT) continue;
      if (c->state == OPENING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
          complain(c, "cannot connect");
          bad += 1;
          c->state = SPENT;
          close(c->fd);
          continue;
        }
        if (!(ready_ones[n].events & EPOLLOUT)) continue;
        watch(c, EPOLLIN, EPOLL_CTL_MOD);
        if (once) ask(c, now_ns());
        else now_free(c);
        continue;
      }
      if (c->state == ASKING && ready_ones[n].events & EPOLLOUT && c->sent < request_length) send_request(c);
      if (ready_ones[n].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
    }
  }
  if (once && finish_ms > 0) {
    bad += (uint64_t)unfinished;
    broken_streams += (uint64_t)unfinished;
    if (unfinished > 0 && !first_bad[0]) snprintf(first_bad, sizeof first_bad, "%ld streams without an end", unfinished);
  }

  printf("{\"windowS\":%.6f,\"requests\":%llu,\"chunks\":%llu,\"bad\":%llu,\"late\":%llu,\"reads\":%llu",
         (double)(window_ended - window_began) / 1e9, (unsigned long long)requests, (unsigned long long)chunks,
         (unsigned long long)bad, (unsigned long long)late, (unsigned long long)reads);
  printf(",\"wholeStreams\":%llu,\"brokenStreams\":%llu,\"firstBad\":\"%s\",\"statuses\":{",
         (unsigned long long)whole_streams, (unsigned long long)broken_streams, first_bad);
  int some = 0;
  for (int n = 0; n < 600; n += 1)
    if (statuses[n]) printf("%s\"%d\":%llu", some++ ? "," : "", n, (unsigned long long)statuses[n]);
  printf("},\"stealShare\":%.4f,\"cpuUs\":{", all[1] > all[0] ? (double)(stolen[1] - stolen[0]) / (double)(all[1] - all[0]) : 0);
  for (int n = 0; n < process_count; n += 1)
    printf("%s\"%s\":%.1f", n ? "," : "", processes[n].name, (double)(processes[n].cpu_ns[1] - processes[n].cpu_ns[0]) / 1e3);
  printf("},\"rssKb\":{");
  for (int n = 0; n < process_count; n += 1)
    printf("%s\"%s\":{\"before\":%ld,\"after\":%ld}", n ? "," : "", processes[n].name, processes[n].rss_kb[0], processes[n].rss_kb[1]);
  struct rusage own;
  getrusage(RUSAGE_SELF, &own);
  printf("},\"ownCpuUs\":%.1f", (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 1e6 + (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec));
  print_spread("total", &total);
  print_spread("firstByte", &first_byte);
  print_spread("oneWay", &one_way);
  print_spread("refusedTotal", &refused_total);
  printf("}\n");
  return 0;
}
