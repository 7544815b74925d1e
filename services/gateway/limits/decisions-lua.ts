import { limitOfUnit } from "./budgets.ts";
import { roundingUnits } from "./judge-demand.ts";

/** Takes seats again, each with at least what it has reserved. */
export const renewLua = `
-- Reserves at least so much of a budget for a seat.
local function reserve(id, seat, unit, amount)
  local name, all = prefix .. reservationsAt[unit] .. id, reservedOf(id, unit)
  local held = call("HGET", name, seat) or 0
  local more = max(0, amount - held)
  call("HSET", name, seat, held + more)
  extend(reservationsAt[unit], id)
  all.any, all.sum = true, all.sum + more
end

local function renew(id, seat, livesMs, budgets)
  local its = seatsOf(id)
  its.taken = its.taken + call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  extend("seats:", id)
  for _, budget in ipairs(budgets or none) do reserve(id, seat, budget[1], budget[4]) end
end
`;

/**
 * Decides on a demand in the order of `judgeDemand`: all books are judged, then all are taken. Returns the limit that refuses
 * or an empty text, the number of its book, and of each book the level of both buckets, and of each of its budgets what is spent
 * and what is reserved. Buckets are written even when nothing is taken: after the clock of Redis was set back, they drain from
 * there. A book comes as a list (id, requests, tokens, concurrency, budgets), which is read in half the time of an object; and each
 * of its budgets too (unit, limit, name of what is spent, needed, wanted; then spent, left and reserved as they are found).
 */
export const admitLua = `
local limitOfUnit = ${luaTable(limitOfUnit)}
local function inFull(number) return string.format("%.17g", number) end

-- Returns the limit of a book that refuses a demand.
local function judge(demand, book, found)
  local id, requestsLimit, tokensLimit, concurrency, budgets = unpack(book)
  local its = (concurrency or budgets) and seatsOf(id)
  local requests = levelOf(id, "requests", requestsLimit, requestsLimit)
  local tokens = levelOf(id, "tokens", tokensLimit, math.huge)
  found[1], found[2], found[3] = requests, tokens, its
  local spentOut, full
  local isLong = tokensLimit and demand.needed > tokensLimit
  for _, budget in ipairs(budgets or none) do
    local unit, limit, at, needed = unpack(budget)
    local spent, reserved = spentOf(at), reservedOf(id, unit).sum
    budget[6], budget[7] = spent, limit - spent - reserved
    if spent >= limit then spentOut = spentOut or unit end
    if spent + needed > limit then isLong = true end
    if spent + reserved + max(1, needed) > limit then full = full or unit end
  end
  if spentOut then return limitOfUnit[spentOut] end
  if isLong then return "prompt" end
  if full then return limitOfUnit[full] .. "_reserved" end
  if concurrency and its.taken >= concurrency then return "concurrency" end
  if requestsLimit and requests + 1 > requestsLimit + ${roundingUnits} then return "requests" end
  if tokensLimit and tokens + min(demand.tokens, tokensLimit) > tokensLimit + ${roundingUnits} then return "tokens" end
end

local function take(demand, book, found, livesMs)
  local id, requestsLimit, tokensLimit, _, budgets = unpack(book)
  local its = found[3]
  found[1] = found[1] + 1
  if tokensLimit then found[2] = found[2] + min(demand.tokens, tokensLimit) end
  if its then
    call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, demand.seat)
    if its.taken == 0 then extend("seats:", id) end
    its.taken = its.taken + 1
  end
  for _, budget in ipairs(budgets or none) do
    local unit, held = budget[1], min(budget[5], budget[7])
    local all = its.reserved[unit]
    call("HSET", prefix .. reservationsAt[unit] .. id, demand.seat, held)
    if not all.any then extend(reservationsAt[unit], id) end
    all.any, all.sum, budget[8] = true, all.sum + held, held
  end
end

local function admit(demand, livesMs)
  local refusedBy, refusedAt, all = "", 0, {}
  for at, book in ipairs(demand.books) do
    all[at] = { 0, 0, false }
    local by = judge(demand, book, all[at])
    if by and refusedAt == 0 then refusedBy, refusedAt = by, at end
  end
  local reply, last = { refusedBy, refusedAt }, 2
  for at, book in ipairs(demand.books) do
    local id, requestsLimit, tokensLimit, _, budgets = unpack(book)
    local found = all[at]
    if refusedAt == 0 then take(demand, book, found, livesMs) end
    if requestsLimit then buckets[id].levels.requests = found[1] end
    if tokensLimit then buckets[id].levels.tokens = found[2] end
    reply[last + 1], reply[last + 2] = inFull(found[1]), inFull(found[2])
    last = last + 2
    for _, budget in ipairs(budgets or none) do
      reply[last + 1], reply[last + 2] = budget[6], budget[8] or 0
      last = last + 2
    end
  end
  return reply
end
`;

/** Lets reservations grow as `growReservation` does. Returns what each book grants: tokens of a minute, and of each budget. */
export const growLua = `
local function growIn(book, each, livesMs)
  local id, limit, tokens, budgets = unpack(book)
  local grants = { 0 }
  local function within(held, wanted, left)
    return max(0, min(wanted - held, floor(left + ${roundingUnits})))
  end
  if limit then
    grants[1] = within(tokens, each.wanted, limit - levelOf(id, "tokens", limit, math.huge))
    change(id, "tokens", limit, math.huge, grants[1])
  end
  if budgets then renew(id, each.seat, livesMs, budgets) end
  for at, budget in ipairs(budgets or none) do
    local unit, most, spentAt, held, wanted = unpack(budget)
    grants[at + 1] = within(held, wanted, most - spentOf(spentAt) - reservedOf(id, unit).sum)
    if grants[at + 1] > 0 then reserve(id, each.seat, unit, held + grants[at + 1]) end
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
