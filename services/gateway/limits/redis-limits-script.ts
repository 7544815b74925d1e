import { lentForMsMax, lentShareMax } from "./lending.ts";
import { debtWindowsMax, roundingUnits, windowMs } from "./rate.ts";

/** The lifetime of a key's records in Redis: as long as a debt may last, and a minute more. */
const keptForMs = (debtWindowsMax + 1) * windowMs;

/**
 * The layout of a key's limits in Redis, and the functions that change them:
 *
 * - `limits:<id>` is a hash. It has the two buckets, each with the time of its level (milliseconds), and the total
 *   reserved of the budget. Its field `unwritten` says how much of that total belongs to unwritten batches.
 * - `seats:<id>` has a seat for each request under way, by the time at which it is free unless it is renewed.
 * - `unwritten:<id>` has each batch of a gateway's books that is not written yet, by the time at which it is given up.
 *   The tokens that its requests spent stay reserved until then, so that no gateway grants them again.
 * - `reservations:<id>` has the reservation of each seat and of each such batch.
 *
 * All of them expire when the key is not used. From `lentUntil` (of the hash) on, every place lent ahead is in use or
 * given back. Before `lendFrom` (of the hash) no gateway is lent any.
 *
 * The time is the clock of Redis, so that gateways need not agree on it. The script formats numbers with a fraction in
 * full for replies, where Redis would cut the fraction off. Redis itself formats numbers in commands.
 */
export const redisLimitsLua = `
local call = redis.call
local prefix = KEYS[1]
local time = call("TIME")
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format("%.0f", nowMs)

local function inFull(number) return string.format("%.17g", number) end
local function whole(number) return string.format("%.0f", number) end

local function usedOf(units, atMs, limit, max)
  if not limit or not units then return 0 end
  local elapsedMs = math.max(0, nowMs - atMs)
  return math.min(math.max(0, units - elapsedMs * limit / ${windowMs}), max)
end

-- Both buckets, what is reserved, how much of that is unwritten, until when all that is sure to be kept, and until when
-- and from when places are lent.
local function levelsOf(id, requestsLimit, tokensLimit)
  local kept = call("HMGET", prefix .. "limits:" .. id, "requests", "requestsAt", "tokens", "tokensAt", "reserved", "unwritten", "keptUntil", "lentUntil", "lendFrom")
  return usedOf(kept[1], kept[2], requestsLimit, requestsLimit),
    usedOf(kept[3], kept[4], tokensLimit, tokensLimit and tokensLimit * ${debtWindowsMax}),
    tonumber(kept[5] or 0), tonumber(kept[6] or 0), tonumber(kept[7] or 0), tonumber(kept[8] or 0), tonumber(kept[9] or 0)
end

local function keep(name) call("PEXPIRE", name, "${keptForMs}") end

local function mayLapse(keptUntil)
  return keptUntil < nowMs + ${keptForMs / 2} or keptUntil > nowMs + ${keptForMs}
end

local function setLevels(id, keptUntil, fields)
  local name = prefix .. "limits:" .. id
  local lapses = mayLapse(keptUntil)
  if lapses then
    fields[#fields + 1] = "keptUntil"
    fields[#fields + 1] = nowMs + ${keptForMs}
  end
  if #fields > 0 then call("HSET", name, unpack(fields)) end
  if lapses then keep(name) end
end

-- What a seat or a batch had reserved, which it has not any more.
local function unreserve(id, name)
  local reservations = prefix .. "reservations:" .. id
  local reserved = call("HGET", reservations, name)
  if not reserved then return 0 end
  call("HDEL", reservations, name)
  return tonumber(reserved)
end

local function free(id, seat)
  call("ZREM", prefix .. "seats:" .. id, seat)
  return unreserve(id, seat)
end

local function forget(id, batch)
  call("ZREM", prefix .. "unwritten:" .. id, batch)
  return unreserve(id, batch)
end
`;

/**
 * ARGV: the lifetime of a seat. Then for each key:
 *
 * - its id, and its limits (requests, tokens, concurrency, budget; empty for none);
 * - the Redis key that counts its spending;
 * - the requests and tokens that a gateway granted by itself;
 * - the number of batches with ends; for each batch its name, the number of ends, the tokens that they used in all,
 *   their seats, and the tokens that each used;
 * - the number of demands; the tokens that they ask for in all, of the budget and of the limit per minute; the seat and
 *   tokens of each demand;
 * - the number of places wanted ahead, the tokens of each place, and their seats.
 *
 * Replies for each key:
 *
 * - its buckets after all its demands and places ahead (requests, tokens);
 * - its budget before them (spent, reserved);
 * - a letter for each demand: `a` admits it, any other letter names the limit that refused it;
 * - the number of places ahead, which is all of them or none;
 * - the time for which places may still be lent.
 *
 * The script checks the limits in the order of `judgeDemand`. It writes the buckets even when nothing is taken: after
 * the clock of Redis was set back, they drain from there. It looks for expired seats when there is no room without
 * them.
 */
export const admitLua = `${redisLimitsLua}
local seatFreeAt = whole(nowMs + ARGV[1])
local at = 2

-- Frees what has ended, and keeps reserved what it used. Who was freed before is not found, and changes nothing.
local function tell(id, mayReserve)
  local batch, count, used = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local first = at + 3
  local last = first + count - 1
  at = last + count + 1
  local reserved, found = 0, false
  if mayReserve then
    local reservations = prefix .. "reservations:" .. id
    for index, held in ipairs(call("HMGET", reservations, unpack(ARGV, first, last))) do
      if held then
        reserved = reserved + held
        found = true
      else
        used = used - ARGV[last + index]
      end
    end
    if found then
      if call("HINCRBY", reservations, batch, whole(used)) == used then
        local unwritten = prefix .. "unwritten:" .. id
        call("ZADD", unwritten, seatFreeAt, batch)
        keep(unwritten)
      end
      call("HDEL", reservations, unpack(ARGV, first, last))
    end
  end
  call("ZREM", prefix .. "seats:" .. id, unpack(ARGV, first, last))
  if not found then return 0, 0 end
  return used - reserved, used
end

local function freeLapsed(id)
  local reserved, unwritten = 0, 0
  for _, seat in ipairs(call("ZRANGEBYSCORE", prefix .. "seats:" .. id, "-inf", now)) do
    reserved = reserved + free(id, seat)
  end
  for _, batch in ipairs(call("ZRANGEBYSCORE", prefix .. "unwritten:" .. id, "-inf", now)) do
    unwritten = unwritten + forget(id, batch)
  end
  return reserved + unwritten, unwritten
end

local replies = {}

local function admit()
  local id, spentAt = ARGV[at], ARGV[at + 5]
  local requestsLimit, tokensLimit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local concurrency, budget = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local aloneRequests, aloneTokens = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
  local batches = tonumber(ARGV[at + 8])
  at = at + 9
  local requests, tokens, reserved, unwritten, keptUntil, lentUntil, lendFrom = levelsOf(id, requestsLimit, tokensLimit)
  if requestsLimit then requests = math.min(math.max(0, requests + aloneRequests), requestsLimit) end
  if tokensLimit then tokens = math.min(math.max(0, tokens + aloneTokens), tokensLimit * ${debtWindowsMax}) end
  local reservedBefore, unwrittenBefore = reserved, unwritten
  for _ = 1, batches do
    local more, moreUnwritten = tell(id, budget or reserved ~= 0)
    reserved = reserved + more
    unwritten = unwritten + moreUnwritten
  end
  local count, asked, cost = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local first = at + 3
  local last = first + 2 * count - 1
  local ahead, each = tonumber(ARGV[last + 1]), tonumber(ARGV[last + 2])
  local firstAhead = last + 3
  at = firstAhead + ahead
  local fields = {}
  local function set(field, value)
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end

  local hasSeats = concurrency or budget
  local seats = hasSeats and call("ZCARD", prefix .. "seats:" .. id) or 0
  local spent = budget and tonumber(call("GET", prefix .. spentAt) or 0) or 0
  local isShort = concurrency and seats + count > concurrency or budget and spent + reserved + asked >= budget
  if isShort or hasSeats and mayLapse(keptUntil) then
    local lapsed, lapsedUnwritten = freeLapsed(id)
    reserved = reserved - lapsed
    unwritten = unwritten - lapsedUnwritten
    seats = call("ZCARD", prefix .. "seats:" .. id)
    isShort = concurrency and seats + count > concurrency or budget and spent + reserved + asked >= budget
  end
  isShort = isShort
    or requestsLimit and requests + count > requestsLimit + ${roundingUnits}
    or tokensLimit and tokens + cost > tokensLimit + ${roundingUnits}

  local size = #replies
  replies[size + 3] = spent + unwritten
  replies[size + 4] = reserved - unwritten
  local seatsBefore, heldBefore = seats, reserved
  local taken = { prefix .. "seats:" .. id }
  if not isShort then
    replies[size + 5] = string.rep("a", count)
    requests = requests + count
    tokens = tokens + cost
    seats = seats + count
    if hasSeats then
      for index = 1, count do
        taken[2 * index] = seatFreeAt
        taken[2 * index + 1] = ARGV[first + 2 * index - 2]
      end
    end
    if budget and count > 0 then
      call("HSET", prefix .. "reservations:" .. id, unpack(ARGV, first, last))
      reserved = reserved + asked
    end
  else
    local letters, held = {}, { prefix .. "reservations:" .. id }
    for index = 1, count do
      local seat, wanted = ARGV[first + 2 * index - 2], tonumber(ARGV[first + 2 * index - 1])
      local costs = tokensLimit and math.min(wanted, tokensLimit) or 0
      if budget and spent + unwritten >= budget then letters[index] = "b"
      elseif budget and spent + reserved >= budget then letters[index] = "v"
      elseif concurrency and seats >= concurrency then letters[index] = "c"
      elseif requestsLimit and requests + 1 > requestsLimit + ${roundingUnits} then letters[index] = "r"
      elseif tokensLimit and tokens + costs > tokensLimit + ${roundingUnits} then letters[index] = "t"
      else
        letters[index] = "a"
        requests = requests + 1
        tokens = tokens + costs
        seats = seats + 1
        if hasSeats then
          taken[#taken + 1] = seatFreeAt
          taken[#taken + 1] = seat
        end
        if budget then
          local budgetTokens = math.min(wanted, budget - spent - reserved)
          reserved = reserved + budgetTokens
          held[#held + 1] = seat
          held[#held + 1] = whole(budgetTokens)
        end
      end
    end
    replies[size + 5] = table.concat(letters)
    if #held > 1 then call("HSET", unpack(held)) end
    -- Whoever was refused because of what is lent asks again when it has come back, and nothing is lent until then.
    if lentUntil > nowMs and replies[size + 5] ~= string.rep("a", count) then set("lendFrom", nowMs + ${2 * lentForMsMax}) end
  end

  local lent = 0
  if ahead > 0 and (lendFrom <= nowMs or lendFrom > nowMs + ${2 * lentForMsMax}) then
    local costs = tokensLimit and math.min(each, tokensLimit) or 0
    local isScarce = requestsLimit and requests + ahead > requestsLimit * ${lentShareMax}
      or tokensLimit and tokens + ahead * costs > tokensLimit * ${lentShareMax}
      or concurrency and seats + ahead > concurrency * ${lentShareMax}
      or budget and spent + reserved + ahead * each > budget * ${lentShareMax}
    if not isScarce then
      lent = ahead
      lentUntil = nowMs + ${lentForMsMax}
      set("lentUntil", lentUntil)
      requests = requests + ahead
      tokens = tokens + ahead * costs
      if hasSeats then
        for index = firstAhead, firstAhead + ahead - 1 do
          taken[#taken + 1] = seatFreeAt
          taken[#taken + 1] = ARGV[index]
        end
      end
      if budget then
        local held, ofEach = { prefix .. "reservations:" .. id }, whole(each)
        for index = firstAhead, firstAhead + ahead - 1 do
          held[#held + 1] = ARGV[index]
          held[#held + 1] = ofEach
        end
        call("HSET", unpack(held))
        reserved = reserved + ahead * each
      end
    end
  end
  replies[size + 6] = lent
  replies[size + 7] = math.min(math.max(0, lentUntil - nowMs), ${lentForMsMax})

  if #taken > 1 then
    call("ZADD", unpack(taken))
    local lapses = mayLapse(keptUntil)
    if lapses or seatsBefore == 0 then keep(taken[1]) end
    if budget and (lapses or heldBefore == 0) then keep(prefix .. "reservations:" .. id) end
  end

  requests, tokens = inFull(requests), inFull(tokens)
  replies[size + 1] = requests
  replies[size + 2] = tokens
  if requestsLimit then
    set("requests", requests)
    set("requestsAt", now)
  end
  if tokensLimit then
    set("tokens", tokens)
    set("tokensAt", now)
  end
  if reserved ~= reservedBefore or unwritten ~= unwrittenBefore then
    set("reserved", whole(reserved))
    set("unwritten", whole(unwritten))
  end
  setLevels(id, keptUntil, fields)
end

while at <= #ARGV do admit() end
return replies
`;

/** ARGV: the key's id, and its limits of requests and tokens per minute; empty for none. Changes nothing. */
export const standingLua = `${redisLimitsLua}
local requests, tokens = levelsOf(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
return { inFull(requests), inFull(tokens) }
`;
