import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Networks of IPv4 that are not the public internet: private, shared, local, for tests, multicast and reserved. */
const notPublic4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

/** The one network of IPv6 with public addresses, and the parts of it that are not or that lead to addresses of IPv4. */
const public6 = ["2000::", 3] as const;
const notPublic6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const closed4 = new BlockList();
for (const [network, bits] of notPublic4) closed4.addSubnet(network, bits, "ipv4");
const open6 = new BlockList();
open6.addSubnet(...public6, "ipv6");
const closed6 = new BlockList();
for (const [network, bits] of notPublic6) closed6.addSubnet(network, bits, "ipv6");

/**
 * True for an address of the public internet. Addresses of IPv6 that hold one of IPv4 (mapped, NAT64, 6to4, Teredo) are
 * never public, since they could lead into a private network.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closed4.check(address, "ipv4");
  return isIPv6(address) && open6.check(address, "ipv6") && !closed6.check(address, "ipv6");
}
