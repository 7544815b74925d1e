import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Returns a list of networks, such as `10.0.0.0/8`, and of single addresses. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Networks that are not the public internet: private, shared, local, for tests, of a cloud's own hosts, multicast and reserved. */
const closed4 =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3";
/** The parts of the one network of IPv6 with public addresses that are not public or lead to addresses of IPv4. */
const closed6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";
const closed = networkList(`${closed4} ${closed6}`.split(" "));
const open6 = networkList(["2000::/3"]);

/**
 * True for an address of the public internet. Addresses of IPv6 that hold one of IPv4 (mapped, NAT64, 6to4, Teredo) are
 * never public, since they could lead into a private network.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closed.check(address, "ipv4");
  return isIPv6(address) && open6.check(address, "ipv6") && !closed.check(address, "ipv6");
}

/** Link-local addresses, those at which clouds give credentials to any process of a host, and forms of IPv6 that lead there. */
const linkLocal = networkList(
  "169.254.0.0/16 168.63.129.16 100.100.100.200 192.0.0.192 fe80::/10 fd00:ec2::254 fd20:ce::254 ::a9fe:0/112 64:ff9b::a9fe:0/112 2002:a9fe::/32".split(
    " ",
  ),
);

/** True for an address that nobody outside of a host's own link has, or that gives away the credentials of the host. */
export function isLinkLocal(address: string): boolean {
  return address.includes("%") || linkLocal.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
