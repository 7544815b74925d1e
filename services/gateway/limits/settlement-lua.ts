import { redisRequestsAt } from "#shared/requests/request-records.ts";
import { redisUsageDaysAt, usageKeptDays } from "#shared/usage/usage.ts";
import { bucketsAndSeatsLua, decideLua } from "./decisions-lua.ts";

/** The lifetime of a settlement's number. It is longer than any gateway can stay unaware that it was booked. */
const sequenceKeptForMs = 24 * 3_600_000;
/** The tokens spent in a period are kept this long after its end, for operators who want to look. */
const spentKeptForMs = 7 * 24 * 3_600_000;
/** The seat of an answer that may be resumed is known for longer than the answer takes, is kept and waits to be booked. */
const seatedForMs = 20 * 60_000;
/** The use of requests under way waits for a gateway that books it, if all are gone, for as long as this. */
const runningKeptForMs = 7 * 24 * 3_600_000;
const daySeconds = 86_400;
/** A gateway is noted as present, and absent ones are looked for, this often within the time for which it counts as present. */
const notedTimes = 15;

const bookLua = `
-- Adds to a count, and returns it, unless it is too large to grow: such a count is left out of sums, and fails none.
local function add(...)
  local reply = redis.pcall(...)
  if type(reply) ~= "table" or not reply.err then return reply end
  if not string.find(reply.err, "overflow") then error(reply.err) end
end

-- Adds what was used, or takes it back where \`times\` is -1.
local function count(used, times)
  for _, each in ipairs(used.spent) do
    local by = times * each.tokens
    if add("INCRBY", prefix .. each.at, by) == by then
      call("PEXPIREAT", prefix .. each.at, each.endsAtMs + ${spentKeptForMs})
    end
  end
  for _, each in ipairs(used.usage) do
    local name = prefix .. each.at
    for _, field in ipairs(each.fields) do add("HINCRBY", name, field[1], times * field[2]) end
    if call("TTL", name) < ${(usageKeptDays - 1) * daySeconds} then
      call("EXPIRE", name, ${usageKeptDays * daySeconds})
      call("ZADD", prefix .. "${redisUsageDaysAt}", 0, each.day)
      call("ZREMRANGEBYRANK", prefix .. "${redisUsageDaysAt}", 0, -${usageKeptDays + 2})
    end
  end
end

-- Writes the record of a request that was cut off, with what it used. Returns the id of its entry.
local function recordCut(text, made)
  local record = cjson.decode(text)
  for field, value in pairs(made) do record[field] = value end
  return call("XADD", prefix .. "${redisRequestsAt}", "*", "record", cjson.encode(record))
end

-- What requests under way used so far is booked once their gateway is gone. It may be back later and book them itself.
local function bookOf(gateway)
  local running, cut, booked = prefix .. "running:" .. gateway, prefix .. "cut:" .. gateway, prefix .. "booked:" .. gateway
  local each = call("HGETALL", running)
  for at = 1, #each, 2 do
    local used, record = cjson.decode(each[at + 1]), call("HGET", cut, each[at])
    local seat = used.answer and call("GET", prefix .. "answer:" .. used.answer.job)
    -- An answer that went on elsewhere has not failed here.
    if seat and seat ~= used.answer.seat then used.usage = used.movedUsage end
    count(used, 1)
    if record then used.entry = recordCut(record, used.made) end
    call("HSET", booked, each[at], cjson.encode(used))
  end
  call("PEXPIRE", booked, ${sequenceKeptForMs})
  call("UNLINK", running, cut)
end

-- An answer has the seat of the latest request for it. That of the one before is free, whose gateway may be dead.
local function seatAnswer(keyId, answer)
  local at = prefix .. "answer:" .. answer.job
  local before = call("GET", at)
  if before and not answer.isResumed then return end
  if before then free(keyId, before, true) end
  call("SET", at, answer.seat, "PX", ${seatedForMs})
end

-- Keeps what requests under way used so far, and forgets those that are over.
local function follow(settlement)
  local gateway = settlement.gateway
  local running, cut, booked = prefix .. "running:" .. gateway, prefix .. "cut:" .. gateway, prefix .. "booked:" .. gateway
  for _, each in ipairs(settlement.running) do
    if call("HEXISTS", booked, each.id) == 0 then
      local isNew = call("HSET", running, each.id, each.used) == 1
      if isNew and each.answer then seatAnswer(each.keyId, each.answer) end
      if each.request then call("HSET", cut, each.id, each.request) end
    end
  end
  if #settlement.running > 0 then
    call("PEXPIRE", running, ${runningKeptForMs})
    call("PEXPIRE", cut, ${runningKeptForMs})
  end
  for _, id in ipairs(settlement.over) do
    call("HDEL", cut, id)
    local earlier = call("HDEL", running, id) == 0 and call("HGET", booked, id)
    if earlier then
      local used = cjson.decode(earlier)
      count(used, -1)
      if used.entry then call("XDEL", prefix .. "${redisRequestsAt}", used.entry) end
      call("HDEL", booked, id)
    end
  end
end

-- Notes now and then that the gateway is present, books those that are gone, and drops old records of requests.
local function noteGateway(settlement)
  local gateways = prefix .. "gateways"
  local noted = call("ZSCORE", gateways, settlement.gateway)
  if noted and math.abs(nowMs - noted) < settlement.isThereForMs / ${notedTimes} then return end
  local goneAt = nowMs - settlement.isThereForMs
  call("ZADD", gateways, nowMs, settlement.gateway)
  for _, gone in ipairs(call("ZRANGEBYSCORE", gateways, "-inf", goneAt)) do bookOf(gone) end
  call("ZREMRANGEBYSCORE", gateways, "-inf", goneAt)
  call("PEXPIRE", gateways, ${runningKeptForMs})
  call("XTRIM", prefix .. "${redisRequestsAt}", "MINID", nowMs - settlement.requestsKeptMs)
end
`;

/**
 * Books a settlement. ARGV: the settlement as JSON, and the records of its requests. Replies the number of present
 * gateways, or 0 if an earlier settlement of the gateway is missing, what each hold that is to grow got of both limits,
 * and the decision on each demand. Ends come first, so that a demand finds what they free. The script notes the number
 * before it books anything: if Redis cannot finish a settlement, a retry must not add half of it again and again.
 */
export const settleLua = `${bucketsAndSeatsLua}${decideLua}${bookLua}
local settlement = cjson.decode(ARGV[1])
local livesMs, requests = settlement.seatLivesMs, prefix .. "${redisRequestsAt}"
local written = prefix .. "written:" .. settlement.gateway
local last = tonumber(call("GET", written) or 0)
if settlement.sequence > math.max(last, settlement.acknowledged) + 1 then return { 0, {}, {} } end
if settlement.sequence > last then
  call("SET", written, settlement.sequence, "PX", ${sequenceKeptForMs})
  for _, each in ipairs(settlement.changes) do
    local requestsLimit, tokensLimit = each.requestsPerMinute, each.tokensPerMinute
    change(each.keyId, "requests", requestsLimit, requestsLimit, each.requests)
    change(each.keyId, "tokens", tokensLimit, math.huge, each.tokens)
    if each.seat then free(each.keyId, each.seat, each.hasReserved) end
  end
  count(settlement, 1)
  follow(settlement)
  for each = 2, #ARGV do call("XADD", requests, "MAXLEN", "~", settlement.requestsMax, "*", "record", ARGV[each]) end
  if settlement.requestsMax == 0 then call("UNLINK", requests) end
end

for _, each in ipairs(settlement.renewed) do renew(each.keyId, each.seat, livesMs, each.budgetTokens) end
local grants, admissions = {}, {}
for _, each in ipairs(settlement.growing) do table.insert(grants, grow(each, livesMs)) end
for _, each in ipairs(settlement.demands) do table.insert(admissions, admit(each, livesMs)) end
keepBuckets()
noteGateway(settlement)
return { call("ZCARD", prefix .. "gateways"), grants, admissions }
`;
