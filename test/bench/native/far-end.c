/*
 * The far end of the bench: a model server that costs next to nothing, so that what is measured is what stands before it.
 *
 *   far-end PORT [MODEL...]     lists the models at /v1/models, and answers every chat as the name of its model says:
 *   m-CHUNKS-DELAY[-PER_WRITE]  streamed, one write for PER_WRITE chunks, DELAY ms from one write to the next; whole,
 *                               one small answer after DELAY ms.
 *
 * The content of a chunk is the monotonic clock in nanoseconds, in 20 digits, at the time of its write: whoever reads it on the
 * same host knows how long it was under way, whatever stood between. One thread; Linux.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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

#define WHEEL 16384
#define READ_BYTES (256 * 1024)

struct bytes {
  char *at;
  size_t length, room;
};

struct connection {
  int fd;
  struct bytes in, out;
  size_t written;
  int waits_for_room;
  /* What it is answering. */
  int answering, streams, tells_usage;
  char model[128];
  long chunks, sent, per_write, delay_ms;
  uint64_t begun_ms, due_ms;
  struct connection *next, **at_wheel;
};

static struct connection *wheel[WHEEL];
static uint64_t turned_ms;
static int epoll;
static char models[65536];

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void append(struct bytes *to, const char *from, size_t length) {
  if (to->length + length > to->room) {
    to->room = (to->length + length) * 2;
    to->at = realloc(to->at, to->room);
    if (!to->at) abort();
  }
  memcpy(to->at + to->length, from, length);
  to->length += length;
}

static void unwheel(struct connection *c) {
  if (!c->at_wheel) return;
  *c->at_wheel = c->next;
  if (c->next) c->next->at_wheel = c->at_wheel;
  c->at_wheel = NULL;
  c->next = NULL;
}

static void wheel_at(struct connection *c, uint64_t due_ms) {
  unwheel(c);
  c->due_ms = due_ms;
  struct connection **slot = &wheel[due_ms % WHEEL];
  c->next = *slot;
  c->at_wheel = slot;
  if (c->next) c->next->at_wheel = &c->next;
  *slot = c;
}

static void drop(struct connection *c) {
  unwheel(c);
  close(c->fd);
  free(c->in.at);
  free(c->out.at);
  c->fd = -1;
  free(c);
}

/* 0 when the connection is gone. */
static int flush(struct connection *c) {
  while (c->written < c->out.length) {
    ssize_t wrote = send(c->fd, c->out.at + c->written, c->out.length - c->written, MSG_NOSIGNAL);
    if (wrote > 0) {
      c->written += (size_t)wrote;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return 0;
    if (!c->waits_for_room) {
      struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
      epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
      c->waits_for_room = 1;
    }
    return 1;
  }
  c->out.length = c->written = 0;
  if (c->waits_for_room) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
    c->waits_for_room = 0;
  }
  return 1;
}

static void put_event(struct bytes *to, const char *event, int length) {
  char size[32];
  append(to, size, (size_t)snprintf(size, sizeof size, "%x\r\n", length + 8));
  append(to, "data: ", 6);
  append(to, event, (size_t)length);
  append(to, "\n\n\r\n", 4);
}

static const char chunk_head[] =
    "{\"id\":\"chatcmpl-7f3a\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"%s\",";

static void put_chunk(struct connection *c) {
  char event[512];
  int length = snprintf(event, sizeof event, chunk_head, c->model);
  length += snprintf(event + length, sizeof event - (size_t)length,
                     "\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\"%020llu\"},\"logprobs\":null,\"finish_reason\":null}]}",
                     c->sent == 0 ? "\"role\":\"assistant\"," : "", (unsigned long long)now_ns());
  put_event(&c->out, event, length);
  c->sent += 1;
}

static void put_end(struct connection *c) {
  char event[512];
  int length = snprintf(event, sizeof event, chunk_head, c->model);
  length += snprintf(event + length, sizeof event - (size_t)length,
                     "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}");
  put_event(&c->out, event, length);
  if (c->tells_usage) {
    length = snprintf(event, sizeof event, chunk_head, c->model);
    length += snprintf(event + length, sizeof event - (size_t)length,
                       "\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":%ld,\"total_tokens\":%ld}}",
                       c->chunks, c->chunks + 9);
    put_event(&c->out, event, length);
  }
  put_event(&c->out, "[DONE]", 6);
  append(&c->out, "0\r\n\r\n", 5);
}

static const char stream_head[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";

static int answer_whole(struct connection *c) {
  char body[1024], head[256];
  int length =
      snprintf(body, sizeof body,
               "{\"id\":\"chatcmpl-7f3a\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"%s\","
               "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
               "\"The capital of France is Paris, on the river Seine, and it has been so for a long time.\"},"
               "\"logprobs\":null,\"finish_reason\":\"stop\"}],"
               "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":20,\"total_tokens\":29}}",
               c->model);
  append(&c->out, head,
         (size_t)snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length));
  append(&c->out, body, (size_t)length);
  c->answering = 0;
  return flush(c);
}

/* Goes on with what it answers, as far as that is due and the socket takes it. */
static int go_on(struct connection *c, uint64_t now_ms) {
  while (c->answering && !c->waits_for_room) {
    if (c->delay_ms > 0) {
      uint64_t writes = c->streams ? (uint64_t)(c->sent / c->per_write) : 0;
      uint64_t due = c->begun_ms + (writes + 1) * (uint64_t)c->delay_ms;
      if (due > now_ms) {
        wheel_at(c, due);
        return 1;
      }
    }
    if (!c->streams) {
      if (!answer_whole(c)) return 0;
      break;
    }
    if (c->sent == 0) append(&c->out, stream_head, sizeof stream_head - 1);
    for (long n = 0; n < c->per_write && c->sent < c->chunks; n += 1) put_chunk(c);
    if (c->sent >= c->chunks) {
      put_end(c);
      c->answering = 0;
    }
    if (!flush(c)) return 0;
  }
  return 1;
}

static int say(struct connection *c, const char *status, const char *body) {
  char head[256];
  append(&c->out, head,
         (size_t)snprintf(head, sizeof head,
                          "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status,
                          strlen(body)));
  append(&c->out, body, strlen(body));
  return flush(c);
}

static int chat(struct connection *c, const char *body, size_t length, uint64_t now_ms) {
  static const char key[] = "\"model\"";
  const char *at = memmem(body, length, key, sizeof key - 1);
  const char *end = body + length;
  if (at) at = memchr(at + sizeof key - 1, '"', (size_t)(end - at) - (sizeof key - 1));
  const char *stop = at ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
  if (!stop || stop - at > (long)sizeof c->model) return say(c, "400 Bad Request", "{\"error\":{\"message\":\"no model\"}}");
  memcpy(c->model, at + 1, (size_t)(stop - at - 1));
  c->model[stop - at - 1] = 0;
  c->per_write = 1;
  c->chunks = c->delay_ms = 0;
  if (sscanf(c->model, "m-%ld-%ld-%ld", &c->chunks, &c->delay_ms, &c->per_write) < 2)
    return say(c, "404 Not Found", "{\"error\":{\"message\":\"no such model\"}}");
  c->streams = memmem(body, length, "\"stream\":true", 13) || memmem(body, length, "\"stream\": true", 14);
  c->tells_usage = memmem(body, length, "\"include_usage\":true", 20) != NULL;
  c->answering = 1;
  c->sent = 0;
  c->begun_ms = now_ms;
  return go_on(c, now_ms);
}

/* The length of a body in chunks, put together in place; -1 while it is not all there, `*used` is what it took. */
static long dechunk(char *from, size_t length, size_t *used) {
  size_t at = 0;
  long put = 0;
  for (;;) {
    char *line = memmem(from + at, length - at, "\r\n", 2);
    if (!line) return -1;
    size_t size = strtoul(from + at, NULL, 16);
    at = (size_t)(line - from) + 2;
    if (length - at < size + 2) return -1;
    memmove(from + put, from + at, size);
    put += (long)size;
    at += size + 2;
    if (size == 0) {
      *used = at;
      return put;
    }
  }
}

/* One request after the other, each when the one before it is answered. */
static int read_requests(struct connection *c, uint64_t now_ms) {
  while (!c->answering && c->in.length > 0) {
    char *head_end = memmem(c->in.at, c->in.length, "\r\n\r\n", 4);
    if (!head_end) return 1;
    size_t head = (size_t)(head_end - c->in.at) + 4;
    *head_end = 0;
    char *length_at = strcasestr(c->in.at, "\r\ncontent-length:");
    int in_chunks = strcasestr(c->in.at, "\r\ntransfer-encoding: chunked") != NULL;
    size_t length = length_at ? strtoul(length_at + 17, NULL, 10) : 0;
    int is_chat = strncmp(c->in.at, "POST /v1/chat/completions ", 26) == 0;
    int is_list = strncmp(c->in.at, "GET /v1/models ", 15) == 0;
    *head_end = '\r';
    size_t used = length;
    if (in_chunks) {
      char *copy = malloc(c->in.length - head);
      if (!copy) abort();
      memcpy(copy, c->in.at + head, c->in.length - head);
      long put = dechunk(copy, c->in.length - head, &used);
      if (put >= 0) memcpy(c->in.at + head, copy, (size_t)put);
      free(copy);
      if (put < 0) return 1;
      length = (size_t)put;
    } else if (c->in.length - head < length) {
      return 1;
    }
    int alive = is_chat   ? chat(c, c->in.at + head, length, now_ms)
                : is_list ? say(c, "200 OK", models)
                          : say(c, "404 Not Found", "{\"detail\":\"Not Found\"}");
    if (!alive) return 0;
    memmove(c->in.at, c->in.at + head + used, c->in.length - head - used);
    c->in.length -= head + used;
  }
  return 1;
}

static int receive(struct connection *c, uint64_t now_ms) {
  static char buffer[READ_BYTES];
  for (;;) {
    ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
    if (got == 0) return 0;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    append(&c->in, buffer, (size_t)got);
    if (!read_requests(c, now_ms)) return 0;
    if ((size_t)got < sizeof buffer) return 1;
  }
}

static void turn_wheel(uint64_t now_ms) {
  for (; turned_ms <= now_ms; turned_ms += 1) {
    struct connection *c = wheel[turned_ms % WHEEL];
    while (c) {
      struct connection *next = c->next;
      if (c->due_ms <= now_ms) {
        unwheel(c);
        if (!go_on(c, now_ms) || !read_requests(c, now_ms)) drop(c);
      }
      c = next;
    }
  }
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: far-end PORT [MODEL...]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  size_t at = (size_t)snprintf(models, sizeof models, "{\"object\":\"list\",\"data\":[");
  for (int n = 2; n < count; n += 1)
    at += (size_t)snprintf(models + at, sizeof models - at,
                           "%s{\"id\":\"%s\",\"object\":\"model\",\"created\":1760000000,\"owned_by\":\"bench\"}",
                           n == 2 ? "" : ",", words[n]);
  snprintf(models + at, sizeof models - at, "]}");

  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(words[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16384) < 0) {
    perror("far-end");
    return 1;
  }
  epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  turned_ms = now_ns() / 1000000;
  static struct epoll_event events[1024];
  for (;;) {
    int ready = epoll_wait(epoll, events, 1024, 1);
    uint64_t now_ms = now_ns() / 1000000;
    for (int n = 0; n < ready; n += 1) {
      struct connection *c = events[n].data.ptr;
      if (!c) {
        for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          c = calloc(1, sizeof *c);
          if (!c) abort();
          c->fd = fd;
          struct epoll_event joined = {.events = EPOLLIN, .data.ptr = c};
          epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &joined);
        }
        continue;
      }
      int alive = 1;
      if (events[n].events & EPOLLOUT) alive = flush(c) && go_on(c, now_ms) && read_requests(c, now_ms);
      if (alive && events[n].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) alive = receive(c, now_ms);
      if (!alive) drop(c);
    }
    turn_wheel(now_ms);
  }
}
