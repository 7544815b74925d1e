import { windowMs } from "./judge-demand.ts";

/** The lifetime of a book's records in Redis after their last change. A debt that takes longer ends with them. */
export const keptForMs = 24 * 3_600_000;
/** The lifetime of a book's buckets is extended this often while they change. */
const extendedEveryMs = 600_000;
/** The reservations of so few seats are summed up each time. The sum of more is kept, and counted anew after a while. */
const fewSeats = 64;
const summedForMs = 10_000;

/**
 * The layout of a book's limits in Redis; the book of a key has the key's id:
 *
 * - `limits:<id>` is a hash with the two buckets, each with the time of its level (milliseconds). For a book of many seats
 *   `reserved` has the sums of its reservations: the number of seats, the time of the count, tokens and money.
 * - `seats:<id>` has a seat for each request under way, by the time at which it is free unless it is renewed.
 * - `reservations:<id>` has the part of the token budget that each of these requests reserved, `reservations-money:<id>` that of
 *   the spend limit.
 * - `spent:<id>:<period>` counts the tokens that were used in a period, `spent-money:<id>:<period>` the millionths of money.
 * - `running:<gateway>` has the use of its requests under way, and `booked:<gateway>` what was booked of them without it.
 * - `cut:<gateway>` has their records, in case that it is killed.
 * - `answer:<job>` has the seat of the latest request for an answer that can be resumed.
 *
 * All of them expire. KEYS[1] is the prefix of all keys, from which the scripts build the names that they need. That
 * works with one Redis, with or without Sentinel, but not with Redis Cluster. The time is the clock of Redis, so that
 * gateways need not agree on it. `redis.call` formats numbers in full; replies would cut fractions off. Each command costs
 * about as much as the rest of the script, so that a lifetime is set only where it is new or has aged. Each function costs as well,
 * so that those which few calls need stand within the parts that need them.
 */
export const bucketsAndSeatsLua = `
local call, none, floor, max, min = redis.call, {}, math.floor, math.max, math.min
local prefix = KEYS[1]
local reservationsAt = { tokens = "reservations:", money = "reservations-money:" }
local time = call("TIME")
local nowMs = time[1] * 1000 + floor(time[2] / 1000)

-- What this call has read, each once. \`keepBuckets\` writes the levels and the sums.
local buckets, seats, spendings = {}, {}, {}

local function bucketsOf(id)
  local its = buckets[id]
  if its then return its end
  local kept = call("HMGET", prefix .. "limits:" .. id, "requests", "requestsAt", "tokens", "tokensAt", "reserved")
  its = { requests = kept[1], requestsAt = kept[2], tokens = kept[3], tokensAt = kept[4], sumsText = kept[5], levels = {} }
  buckets[id] = its
  return its
end

-- The level of a bucket: drained since it was written, and changed by this call.
local function levelOf(id, bucket, limit, most)
  if not limit then return 0 end
  local its = bucketsOf(id)
  if not its.levels[bucket] then
    local level, atMs = its[bucket], its[bucket .. "At"]
    its.levels[bucket] = level and max(0, level - max(0, nowMs - atMs) * limit / ${windowMs}) or 0
  end
  return min(its.levels[bucket], most)
end

local function change(id, bucket, limit, most, by)
  if not limit or by == 0 then return end
  local level = levelOf(id, bucket, limit, most) + by
  buckets[id].levels[bucket] = min(max(0, level), most)
end

-- The kept sums of a book's reservations, without the seats that this call has freed.
local function sumsOf(id)
  local its = bucketsOf(id)
  if its.sums == nil then
    local text = its.sumsText
    local count, atMs, tokens, money = string.match(text or "", "^(%d+) (%d+) (%-?%d+) (%-?%d+)$")
    its.sums = count and {
      seats = tonumber(count), atMs = tonumber(atMs), tokens = tonumber(tokens), money = tonumber(money),
    } or false
  end
  return its.sums
end

-- Frees a seat, with what it has reserved of each budget as its gateway knows it.
local function free(id, seat, tokens, money)
  local taken = call("ZREM", prefix .. "seats:" .. id, seat)
  if not tokens and not money then return end
  local sums = sumsOf(id)
  if tokens and call("HDEL", prefix .. "reservations:" .. id, seat) == 1 and sums then
    sums.tokens = max(sums.tokens < 0 and -1 or 0, sums.tokens - tokens)
  end
  if money and call("HDEL", prefix .. "reservations-money:" .. id, seat) == 1 and sums then
    sums.money = max(sums.money < 0 and -1 or 0, sums.money - money)
  end
  if sums then sums.seats, sums.isChanged = sums.seats - taken, true end
end

-- Frees a seat of which its gateway has told nothing.
local function freeUnknown(id, seat)
  free(id, seat, 0, 0)
  local sums = sumsOf(id)
  if sums then sums.seats = -1 end
end

-- Seats and reservations are taken and freed together, so that a book without seats has no reservations.
local function seatsOf(id)
  local its = seats[id]
  if its then return its end
  its = { taken = call("ZCARD", prefix .. "seats:" .. id), reserved = {} }
  seats[id] = its
  if its.taken == 0 then return its end
  for _, lapsed in ipairs(call("ZRANGEBYSCORE", prefix .. "seats:" .. id, "-inf", nowMs)) do
    freeUnknown(id, lapsed)
    its.taken = its.taken - 1
  end
  return its
end

-- What the seats of a book have reserved of a budget, and whether any has. Many are not summed up each time, but others may
-- have changed the seats since.
local function reservedOf(id, unit)
  local its = seatsOf(id)
  local all = its.reserved[unit]
  if all then return all end
  all = { any = false, sum = 0 }
  its.reserved[unit] = all
  if its.taken == 0 then return all end
  local sums = its.taken > ${fewSeats} and sumsOf(id)
  if sums and sums.seats == its.taken and sums[unit] >= 0 and nowMs - sums.atMs < ${summedForMs} then
    all.any, all.sum, all.atMs = true, sums[unit], sums.atMs
    return all
  end
  for _, held in ipairs(call("HVALS", prefix .. reservationsAt[unit] .. id)) do all.any, all.sum = true, all.sum + held end
  return all
end

-- Notes the sums of books with many seats.
local function noteSums()
  for id, its in pairs(seats) do
    local tokens, money = its.reserved.tokens, its.reserved.money
    if its.taken > ${fewSeats} and (tokens or money) then
      local atMs = min(tokens and tokens.atMs or nowMs, money and money.atMs or nowMs)
      local text = string.format("%d %d %.0f %.0f", its.taken, atMs, tokens and tokens.sum or -1, money and money.sum or -1)
      bucketsOf(id).newSums = text
    end
  end
  for id, its in pairs(buckets) do
    local sums = its.sums
    if sums and sums.isChanged and not its.newSums then
      its.newSums = string.format("%d %d %.0f %.0f", max(0, sums.seats), sums.atMs, sums.tokens, sums.money)
    end
  end
end

local function keepBuckets()
  for id, its in pairs(buckets) do
    local fields = {}
    local last = 0
    for bucket, level in pairs(its.levels) do
      fields[last + 1], fields[last + 2], fields[last + 3], fields[last + 4] = bucket, level, bucket .. "At", nowMs
      last = last + 4
    end
    if its.newSums then
      fields[last + 1], fields[last + 2] = "reserved", its.newSums
      last = last + 2
    end
    if last > 0 then
      call("HSET", prefix .. "limits:" .. id, unpack(fields))
      local keptAtMs = max(its.requestsAt or 0, its.tokensAt or 0)
      if floor(keptAtMs / ${extendedEveryMs}) ~= floor(nowMs / ${extendedEveryMs}) then
        call("PEXPIRE", prefix .. "limits:" .. id, ${keptForMs + extendedEveryMs})
      end
    end
  end
end

local function extend(what, id) call("PEXPIRE", prefix .. what .. id, ${keptForMs}) end

local function spentOf(spentAt)
  spendings[spentAt] = spendings[spentAt] or tonumber(call("GET", prefix .. spentAt) or 0)
  return spendings[spentAt]
end
`;
