import { growthTokens, roundingUnits, windowMs } from "./judge-demand.ts";

/** The lifetime of a book's records in Redis after their last change. A debt that takes longer ends with them. */
export const keptForMs = 24 * 3_600_000;
/** The lifetime of a book's buckets is extended this often while they change. */
const extendedEveryMs = 600_000;

/**
 * The layout of a book's limits in Redis; the book of a key has the key's id:
 *
 * - `limits:<id>` is a hash with the two buckets, each with the time of its level (milliseconds).
 * - `seats:<id>` has a seat for each request under way, by the time at which it is free unless it is renewed.
 * - `reservations:<id>` has the part of the budget that each of these requests reserved.
 * - `spent:<id>:<period>` counts the tokens that were used in a period.
 * - `running:<gateway>` has the use of its requests under way, and `booked:<gateway>` what was booked of them without it.
 * - `cut:<gateway>` has their records, in case that it is killed.
 * - `answer:<job>` has the seat of the latest request for an answer that can be resumed.
 *
 * All of them expire. KEYS[1] is the prefix of all keys, from which the scripts build the names that they need. That
 * works with one Redis, with or without Sentinel, but not with Redis Cluster. The time is the clock of Redis, so that
 * gateways need not agree on it. `redis.call` formats numbers in full; replies would cut fractions off. Each command costs
 * about as much as the rest of the script, so that a lifetime is set only where it is new or has aged.
 */
export const bucketsAndSeatsLua = `
local call = redis.call
local prefix = KEYS[1]
local time = call("TIME")
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

-- What this call has read, each once. \`keepBuckets\` writes the levels.
local buckets, seats, spendings = {}, {}, {}

-- The level of a bucket: drained since it was written, and changed by this call.
local function levelOf(id, bucket, limit, max)
  if not limit then return 0 end
  local its = buckets[id]
  if not its then
    local kept = call("HMGET", prefix .. "limits:" .. id, "requests", "requestsAt", "tokens", "tokensAt")
    its = { kept = { requests = kept[1], requestsAt = kept[2], tokens = kept[3], tokensAt = kept[4] }, levels = {} }
    buckets[id] = its
  end
  if not its.levels[bucket] then
    local level, atMs = its.kept[bucket], its.kept[bucket .. "At"]
    its.levels[bucket] = level and math.max(0, level - math.max(0, nowMs - atMs) * limit / ${windowMs}) or 0
  end
  return math.min(its.levels[bucket], max)
end

local function change(id, bucket, limit, max, by)
  if not limit or by == 0 then return end
  local level = levelOf(id, bucket, limit, max) + by
  buckets[id].levels[bucket] = math.min(math.max(0, level), max)
end

local function keepBuckets()
  for id, its in pairs(buckets) do
    local fields = {}
    for bucket, level in pairs(its.levels) do
      for _, each in ipairs({ bucket, level, bucket .. "At", nowMs }) do table.insert(fields, each) end
    end
    call("HSET", prefix .. "limits:" .. id, unpack(fields))
    local keptAtMs = math.max(its.kept.requestsAt or 0, its.kept.tokensAt or 0)
    if math.floor(keptAtMs / ${extendedEveryMs}) ~= math.floor(nowMs / ${extendedEveryMs}) then
      call("PEXPIRE", prefix .. "limits:" .. id, ${keptForMs + extendedEveryMs})
    end
  end
end

local function free(id, seat, hasReserved)
  call("ZREM", prefix .. "seats:" .. id, seat)
  if hasReserved then call("HDEL", prefix .. "reservations:" .. id, seat) end
end

-- Seats and reservations are taken and freed together, so that a key without seats has no reservations.
local function seatsOf(id)
  local its = seats[id]
  if its then return its end
  its = { taken = call("ZCARD", prefix .. "seats:" .. id), reservations = 0, reserved = 0 }
  seats[id] = its
  if its.taken == 0 then return its end
  for _, lapsed in ipairs(call("ZRANGEBYSCORE", prefix .. "seats:" .. id, "-inf", nowMs)) do
    free(id, lapsed, true)
    its.taken = its.taken - 1
  end
  for _, held in ipairs(call("HVALS", prefix .. "reservations:" .. id)) do
    its.reservations = its.reservations + 1
    its.reserved = its.reserved + held
  end
  return its
end

local function extend(what, id) call("PEXPIRE", prefix .. what .. id, ${keptForMs}) end

-- Takes a seat that is new.
local function take(id, seat, livesMs, budgetTokens)
  local its = seatsOf(id)
  call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  if its.taken == 0 then extend("seats:", id) end
  its.taken = its.taken + 1
  if not budgetTokens then return end
  call("HSET", prefix .. "reservations:" .. id, seat, budgetTokens)
  if its.reservations == 0 then extend("reservations:", id) end
  its.reservations, its.reserved = its.reservations + 1, its.reserved + budgetTokens
end

-- Takes a seat again, with at least what it has reserved.
local function renew(id, seat, livesMs, budgetTokens)
  local its = seatsOf(id)
  its.taken = its.taken + call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  extend("seats:", id)
  if not budgetTokens then return end
  local held = call("HGET", prefix .. "reservations:" .. id, seat)
  local more = math.max(0, budgetTokens - (held or 0))
  call("HSET", prefix .. "reservations:" .. id, seat, (held or 0) + more)
  extend("reservations:", id)
  its.reservations, its.reserved = its.reservations + (held and 0 or 1), its.reserved + more
end

local function spentOf(spentAt)
  spendings[spentAt] = spendings[spentAt] or tonumber(call("GET", prefix .. spentAt) or 0)
  return spendings[spentAt]
end
`;

/**
 * Decides on a demand in the order of `judgeDemand`: all books are judged, then all are taken. Returns the limit that refuses
 * or an empty text, the number of its book, and of each book the level of both buckets, the tokens spent, and the tokens
 * reserved of the budget. Buckets are written even when nothing is taken: after the clock of Redis was set back, they drain
 * from there. `grow` decides as `growReservation` does.
 */
export const decideLua = `
local function inFull(number) return string.format("%.17g", number) end

-- What a demand finds of a book, and the limit of the book that refuses it.
local function judge(demand, book)
  local id, requestsLimit, tokensLimit = book.id, book.requestsPerMinute, book.tokensPerMinute
  local concurrency, budget = book.concurrency, book.budget
  local needed = demand.promptTokens - ${growthTokens}
  local its = (concurrency or budget) and seatsOf(id)
  local found = {
    seats = its,
    requests = levelOf(id, "requests", requestsLimit, requestsLimit),
    tokens = levelOf(id, "tokens", tokensLimit, math.huge),
    cost = tokensLimit and math.min(demand.tokens, tokensLimit) or 0,
    spent = budget and spentOf(book.spentAt) or 0,
    budgetTokens = 0,
  }
  local spent, reserved = found.spent, its and its.reserved
  if budget and spent >= budget then return found, "budget" end
  if budget and spent + needed > budget or tokensLimit and needed > tokensLimit then return found, "prompt" end
  if budget and spent + reserved + math.max(1, needed) > budget then return found, "budget_reserved" end
  if concurrency and its.taken >= concurrency then return found, "concurrency" end
  if requestsLimit and found.requests + 1 > requestsLimit + ${roundingUnits} then return found, "requests" end
  if tokensLimit and found.tokens + found.cost > tokensLimit + ${roundingUnits} then return found, "tokens" end
  return found
end

local function admit(demand, livesMs)
  local all, refusedBy, refusedAt = {}, "", 0
  for at, book in ipairs(demand.books) do
    local found, by = judge(demand, book)
    all[at] = found
    if by and refusedAt == 0 then refusedBy, refusedAt = by, at end
  end
  local reply = { refusedBy, refusedAt }
  for at, book in ipairs(demand.books) do
    local found, budget = all[at], book.budget
    if refusedAt == 0 then
      found.requests, found.tokens = found.requests + 1, found.tokens + found.cost
      if budget then found.budgetTokens = math.min(demand.tokens, budget - found.spent - found.seats.reserved) end
      if found.seats then take(book.id, demand.seat, livesMs, budget and found.budgetTokens) end
    end
    if book.requestsPerMinute then buckets[book.id].levels.requests = found.requests end
    if book.tokensPerMinute then buckets[book.id].levels.tokens = found.tokens end
    table.insert(reply, { inFull(found.requests), inFull(found.tokens), found.spent, found.budgetTokens })
  end
  return reply
end

local function growIn(book, each, livesMs)
  local id, limit, budget, tokens, budgetTokens = book.id, book.tokensPerMinute, book.budget, 0, 0
  local function within(held, left)
    return math.max(0, math.min(each.wanted - held, math.floor(left + ${roundingUnits})))
  end
  if limit then
    tokens = within(book.tokens, limit - levelOf(id, "tokens", limit, math.huge))
    change(id, "tokens", limit, math.huge, tokens)
  end
  if budget then
    renew(id, each.seat, livesMs, book.budgetTokens)
    budgetTokens = within(book.budgetTokens, budget - spentOf(book.spentAt) - seatsOf(id).reserved)
    if budgetTokens > 0 then renew(id, each.seat, livesMs, book.budgetTokens + budgetTokens) end
  end
  return { tokens, budgetTokens }
end

local function grow(each, livesMs)
  local grants = {}
  for at, book in ipairs(each.books) do grants[at] = growIn(book, each, livesMs) end
  return grants
end
`;
