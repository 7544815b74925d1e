import { debtWindowsMax, roundingUnits, windowMs } from "./rate.ts";

/** As long as anything may be owed, and a minute more. */
const keptForMs = (debtWindowsMax + 1) * windowMs;

/**
 * How a key's limits lie in Redis, and what is done to them. `limits:<id>` is a hash of the two buckets, each with the
 * moment of its level (milliseconds), and of what is reserved of the budget in all. `seats:<id>` has a seat for each
 * request under way, by when it is free unless it is renewed, and `reservations:<id>` what each of them reserved. The
 * three live and lapse together. `spent:<id>:<period>` is what was used of the budget.
 *
 * Time is that of Redis, so that gateways need not agree on it. Numbers are written out in full: left to itself, Lua
 * keeps 14 digits.
 */
export const redisLimitsLua = `
local prefix = KEYS[1]
local time = redis.call("TIME")
local nowMs = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000

local function inFull(number) return string.format("%.17g", number) end
local function whole(number) return string.format("%.0f", number) end

local function keyOf(id)
  return { limits = prefix .. "limits:" .. id, seats = prefix .. "seats:" .. id, reservations = prefix .. "reservations:" .. id }
end

local function keep(key)
  for _, name in pairs(key) do redis.call("PEXPIRE", name, ${keptForMs}) end
end

local function usedOf(key, bucket, limit, max)
  if not limit then return 0 end
  local kept = redis.call("HMGET", key.limits, bucket, bucket .. "At")
  if not kept[1] then return 0 end
  local elapsedMs = math.max(0, nowMs - tonumber(kept[2]))
  return math.min(math.max(0, tonumber(kept[1]) - elapsedMs * limit / ${windowMs}), max)
end

local function requestsUsedOf(key, limit) return usedOf(key, "requests", limit, limit) end
local function tokensUsedOf(key, limit) return usedOf(key, "tokens", limit, limit and limit * ${debtWindowsMax}) end

local function setUsed(key, bucket, limit, used)
  if limit then redis.call("HSET", key.limits, bucket, inFull(used), bucket .. "At", inFull(nowMs)) end
end

local function reserve(key, seat, tokens)
  if redis.call("HSETNX", key.reservations, seat, whole(tokens)) == 1 then
    redis.call("HINCRBY", key.limits, "reserved", whole(tokens))
  end
end

local function free(key, seat)
  redis.call("ZREM", key.seats, seat)
  local reserved = redis.call("HGET", key.reservations, seat)
  if reserved then
    redis.call("HDEL", key.reservations, seat)
    redis.call("HINCRBY", key.limits, "reserved", whole(0 - tonumber(reserved)))
  end
end
`;

/**
 * ARGV: the demand as JSON. Replies what refused it (or nothing), the levels of both buckets after that, what it
 * holds of the budget, and what was spent of that. The order of the questions is that of `judgeDemand`. Buckets are written also when nothing is
 * taken: after the clock of Redis was set back, they drain from there.
 */
export const admitLua = `${redisLimitsLua}
local demand = cjson.decode(ARGV[1])
local key = keyOf(demand.keyId)
local limits = demand.limits
local requests = requestsUsedOf(key, limits.requestsPerMinute)
local tokens = tokensUsedOf(key, limits.tokensPerMinute)
local cost = math.min(demand.tokens, limits.tokensPerMinute or 0)

for _, seat in ipairs(redis.call("ZRANGEBYSCORE", key.seats, "-inf", inFull(nowMs))) do free(key, seat) end
local seats = redis.call("ZCARD", key.seats)
local reserved = tonumber(redis.call("HGET", key.limits, "reserved") or 0)
local spent = limits.budget and tonumber(redis.call("GET", prefix .. demand.spentAt) or 0) or 0

-- What has ended and is not yet written is no longer under way, but has spent what it used.
for _, ended in ipairs(demand.ended) do
  if redis.call("ZSCORE", key.seats, ended.seat) then
    seats = seats - 1
    reserved = reserved - tonumber(redis.call("HGET", key.reservations, ended.seat) or 0)
    spent = spent + ended.usedTokens
  end
end

local function refusal()
  if limits.budget and spent >= limits.budget.tokens then return "budget" end
  if limits.budget and spent + reserved >= limits.budget.tokens then return "budget_reserved" end
  if limits.concurrency and seats >= limits.concurrency then return "concurrency" end
  if limits.requestsPerMinute and requests + 1 > limits.requestsPerMinute + ${roundingUnits} then return "requests" end
  if limits.tokensPerMinute and tokens + cost > limits.tokensPerMinute + ${roundingUnits} then return "tokens" end
  return ""
end

local by = refusal()
local budgetTokens = 0
if by == "" then
  requests = requests + 1
  tokens = tokens + cost
  if demand.needsSeat then redis.call("ZADD", key.seats, inFull(nowMs + demand.seatLivesMs), demand.seat) end
  if limits.budget then
    budgetTokens = math.min(demand.tokens, limits.budget.tokens - spent - reserved)
    reserve(key, demand.seat, budgetTokens)
  end
end
setUsed(key, "requests", limits.requestsPerMinute, requests)
setUsed(key, "tokens", limits.tokensPerMinute, tokens)
keep(key)
return { by, inFull(requests), inFull(tokens), whole(budgetTokens), whole(spent) }
`;

/** ARGV: the key's id and its limits as JSON. Changes nothing. */
export const standingLua = `${redisLimitsLua}
local key = keyOf(ARGV[1])
local limits = cjson.decode(ARGV[2])
return {
  inFull(requestsUsedOf(key, limits.requestsPerMinute)),
  inFull(tokensUsedOf(key, limits.tokensPerMinute)),
}
`;
