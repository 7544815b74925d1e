/**
 * Lua scripts, each executed in one step. Of two concurrent changes of a key only one succeeds, and nothing lapses in
 * between.
 */

/**
 * KEYS: record, tombstone, ids, peppers, audit. ARGV: id, version that is replaced or `nothing`, fingerprint of the
 * pepper, time when the record lapses, audit entry, maximum number of audit entries, number of the tombstone's fields
 * and values, the tombstone's fields and values, the record's fields and values.
 */
export const writeScript = `
local peppers = redis.call("GET", KEYS[4])
if ARGV[2] == "nothing" then
  if not peppers then
    redis.call("SET", KEYS[4], ARGV[3])
  elseif not string.find(peppers, ARGV[3], 1, true) then
    return "foreign"
  end
else
  if not peppers then return "unfounded" end
  if redis.call("EXISTS", KEYS[1]) == 0 then return "conflict" end
  if (redis.call("HGET", KEYS[1], "version") or "0") ~= ARGV[2] then return "conflict" end
end
redis.call("DEL", KEYS[1], KEYS[2])
local first = 8 + tonumber(ARGV[7])
redis.call("HSET", KEYS[1], unpack(ARGV, first))
redis.call("PEXPIREAT", KEYS[1], ARGV[4])
if first > 8 then redis.call("HSET", KEYS[2], unpack(ARGV, 8, first - 1)) end
redis.call("SADD", KEYS[3], ARGV[1])
redis.call("XADD", KEYS[5], "MAXLEN", "~", ARGV[6], "*", "key", ARGV[1], "entry", ARGV[5])
return "written"
`;

/**
 * KEYS: record, tombstone, peppers, audit. ARGV: id, audit entry, maximum number of audit entries. An emptied store
 * only gets the entry, because gateways may still know the key.
 */
export const forgetScript = `
if redis.call("EXISTS", KEYS[3]) == 1 then
  if redis.call("EXISTS", KEYS[1]) == 1 then return "conflict" end
  if redis.call("DEL", KEYS[2]) == 0 then return "conflict" end
end
redis.call("XADD", KEYS[4], "MAXLEN", "~", ARGV[3], "*", "key", ARGV[1], "entry", ARGV[2])
return "written"
`;

/** KEYS: peppers. ARGV: fingerprint of a pepper. The script does not found an emptied store. */
export const addPepperScript = `
local peppers = redis.call("GET", KEYS[1])
if not peppers then return "unfounded" end
if not string.find(peppers, ARGV[1], 1, true) then redis.call("SET", KEYS[1], ARGV[1] .. "," .. peppers) end
return "written"
`;
