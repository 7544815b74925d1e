/** Sets an entry as the newest of a map. Removes the oldest entry if there are more than `max`, and returns its key. */
export function setNewest<Key, Value>(
  map: Map<Key, Value>,
  [key, value]: readonly [Key, Value],
  max: number,
): Key | undefined {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size <= max || oldest === undefined) return undefined;
  map.delete(oldest);
  return oldest;
}
