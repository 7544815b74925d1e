import { limitOfUnit } from "./budgets.ts";
import { roundingUnits, windowMs } from "./judge-demand.ts";

/** The lifetime of a book's records in Redis after their last change. A debt that takes longer ends with them. */
export const keptForMs = 24 * 3_600_000;
/** The lifetime of a book's buckets is extended this often while they change. */
const extendedEveryMs = 600_000;

/**
 * The layout of a book's limits in Redis; the book of a key has the key's id:
 *
 * - `limits:<id>` is a hash with the two buckets, each with the time of its level (milliseconds).
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
 * about as much as the rest of the script, so that a lifetime is set only where it is new or has aged.
 */
export const bucketsAndSeatsLua = `
local call, none = redis.call, {}
local prefix = KEYS[1]
local reservationsAt = { tokens = "reservations:", money = "reservations-money:" }
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

local function free(id, seat, units)
  call("ZREM", prefix .. "seats:" .. id, seat)
  for _, unit in ipairs(units or none) do call("HDEL", prefix .. reservationsAt[unit] .. id, seat) end
end

-- Seats and reservations are taken and freed together, so that a book without seats has no reservations.
local function seatsOf(id)
  local its = seats[id]
  if its then return its end
  its = { taken = call("ZCARD", prefix .. "seats:" .. id), reserved = {} }
  seats[id] = its
  if its.taken == 0 then return its end
  for _, lapsed in ipairs(call("ZRANGEBYSCORE", prefix .. "seats:" .. id, "-inf", nowMs)) do
    free(id, lapsed, { "tokens", "money" })
    its.taken = its.taken - 1
  end
  return its
end

-- What the seats of a book have reserved of a budget, and how many have.
local function reservedOf(id, unit)
  local its = seatsOf(id)
  local all = its.reserved[unit]
  if all then return all end
  all = { count = 0, sum = 0 }
  its.reserved[unit] = all
  if its.taken == 0 then return all end
  for _, held in ipairs(call("HVALS", prefix .. reservationsAt[unit] .. id)) do
    all.count, all.sum = all.count + 1, all.sum + held
  end
  return all
end

local function extend(what, id) call("PEXPIRE", prefix .. what .. id, ${keptForMs}) end

-- Reserves at least so much of a budget for a seat.
local function reserve(id, seat, unit, amount, isNew)
  local name, all = prefix .. reservationsAt[unit] .. id, reservedOf(id, unit)
  local held = not isNew and call("HGET", name, seat)
  local more = math.max(0, amount - (held or 0))
  call("HSET", name, seat, (held or 0) + more)
  if not isNew or all.count == 0 then extend(reservationsAt[unit], id) end
  all.count, all.sum = all.count + (held and 0 or 1), all.sum + more
end

-- Takes a seat that is new.
local function take(id, seat, livesMs)
  local its = seatsOf(id)
  call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  if its.taken == 0 then extend("seats:", id) end
  its.taken = its.taken + 1
end

-- Takes a seat again, with at least what it has reserved.
local function renew(id, seat, livesMs, budgets)
  local its = seatsOf(id)
  its.taken = its.taken + call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  extend("seats:", id)
  for _, budget in ipairs(budgets or none) do reserve(id, seat, budget.unit, budget.held) end
end

local function spentOf(spentAt)
  spendings[spentAt] = spendings[spentAt] or tonumber(call("GET", prefix .. spentAt) or 0)
  return spendings[spentAt]
end
`;

/**
 * Decides on a demand in the order of `judgeDemand`: all books are judged, then all are taken. Returns the limit that refuses
 * or an empty text, the number of its book, and of each book the level of both buckets, and of each of its budgets what is spent
 * and what is reserved. Buckets are written even when nothing is taken: after the clock of Redis was set back, they drain from
 * there. `grow` decides as `growReservation` does.
 */
export const decideLua = `
local limitOfUnit = ${luaTable(limitOfUnit)}
local function inFull(number) return string.format("%.17g", number) end

-- What a demand finds of the budgets of a book, and the limit that refuses it.
local function judgeBudgets(book, found)
  local spentOut, isLong, full
  for at, budget in ipairs(book.budgets or none) do
    local limit, needed, name = budget.limit, budget.needed, limitOfUnit[budget.unit]
    local spent, reserved = spentOf(budget.spentAt), reservedOf(book.id, budget.unit).sum
    found.spent[at], found.left[at] = spent, limit - spent - reserved
    if spent >= limit then spentOut = spentOut or name end
    if spent + needed > limit then isLong = true end
    if spent + reserved + math.max(1, needed) > limit then full = full or name .. "_reserved" end
  end
  return spentOut, isLong, full
end

-- What a demand finds of a book, and the limit of the book that refuses it.
local function judge(demand, book)
  local id, requestsLimit, tokensLimit = book.id, book.requestsPerMinute, book.tokensPerMinute
  local found = {
    seats = (book.concurrency or book.budgets) and seatsOf(id),
    requests = levelOf(id, "requests", requestsLimit, requestsLimit),
    tokens = levelOf(id, "tokens", tokensLimit, math.huge),
    cost = tokensLimit and math.min(demand.tokens, tokensLimit) or 0,
    spent = {}, left = {}, reserved = {},
  }
  local spentOut, isLong, full = judgeBudgets(book, found)
  if spentOut then return found, spentOut end
  if isLong or tokensLimit and demand.needed > tokensLimit then return found, "prompt" end
  if full then return found, full end
  if book.concurrency and found.seats.taken >= book.concurrency then return found, "concurrency" end
  if requestsLimit and found.requests + 1 > requestsLimit + ${roundingUnits} then return found, "requests" end
  if tokensLimit and found.tokens + found.cost > tokensLimit + ${roundingUnits} then return found, "tokens" end
  return found
end

local function takeOf(book, found, demand, livesMs)
  found.requests, found.tokens = found.requests + 1, found.tokens + found.cost
  if found.seats then take(book.id, demand.seat, livesMs) end
  for at, budget in ipairs(book.budgets or none) do
    found.reserved[at] = math.min(budget.wanted, found.left[at])
    reserve(book.id, demand.seat, budget.unit, found.reserved[at], true)
  end
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
    local found = all[at]
    if refusedAt == 0 then takeOf(book, found, demand, livesMs) end
    if book.requestsPerMinute then buckets[book.id].levels.requests = found.requests end
    if book.tokensPerMinute then buckets[book.id].levels.tokens = found.tokens end
    table.insert(reply, { inFull(found.requests), inFull(found.tokens), found.spent, found.reserved })
  end
  return reply
end

local function growIn(book, each, livesMs)
  local id, limit, grants = book.id, book.tokensPerMinute, { 0 }
  local function within(held, wanted, left)
    return math.max(0, math.min(wanted - held, math.floor(left + ${roundingUnits})))
  end
  if limit then
    grants[1] = within(book.tokens, each.wanted, limit - levelOf(id, "tokens", limit, math.huge))
    change(id, "tokens", limit, math.huge, grants[1])
  end
  if book.budgets then renew(id, each.seat, livesMs, book.budgets) end
  for at, budget in ipairs(book.budgets or none) do
    local left = budget.limit - spentOf(budget.spentAt) - reservedOf(id, budget.unit).sum
    local more = within(budget.held, budget.wanted, left)
    if more > 0 then reserve(id, each.seat, budget.unit, budget.held + more) end
    grants[at + 1] = more
  end
  return grants
end

local function grow(each, livesMs)
  local grants = {}
  for at, book in ipairs(each.books) do grants[at] = growIn(book, each, livesMs) end
  return grants
end
`;

function luaTable(fields: Readonly<Record<string, string>>): string {
  return `{ ${Object.entries(fields)
    .map(([name, value]) => `${name} = "${value}"`)
    .join(", ")} }`;
}
