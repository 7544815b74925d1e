import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isPublicAddress } from "../../../../services/gateway/images/image-fetcher.ts";

test.each(["1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255", "223.255.255.255"])(
  "an address is public of IPv4: %s",
  (address) => expect(isPublicAddress(address)).toBe(true),
);
test.each(["2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2003::1", "2620:fe::fe"])(
  "an address is public of IPv6: %s",
  (address) => expect(isPublicAddress(address)).toBe(true),
);

test.each([
  ["this host", "0.0.0.0"],
  ["loopback", "127.0.0.1"],
  ["loopback", "127.255.255.254"],
  ["a private network", "10.0.0.1"],
  ["a private network", "172.16.0.1"],
  ["a private network", "172.31.255.255"],
  ["a private network", "192.168.1.1"],
  ["a carrier's network", "100.64.0.1"],
  ["metadata of a cloud", "169.254.169.254"],
  ["documentation", "192.0.2.1"],
  ["benchmarks", "198.19.0.1"],
  ["multicast", "224.0.0.1"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["loopback", "::1"],
  ["nothing", "::"],
  ["loopback of IPv4, mapped", "::ffff:127.0.0.1"],
  ["a private network of IPv4, mapped", "::ffff:a00:1"],
  ["a public address of IPv4, mapped", "::ffff:1.1.1.1"],
  ["a private network of IPv4, by NAT64", "64:ff9b::10.0.0.1"],
  ["a private network of IPv4, by 6to4", "2002:a00:1::1"],
  ["Teredo", "2001:0:a00:1::1"],
  ["documentation", "2001:db8::1"],
  ["documentation", "3fff::1"],
  ["a unique local network", "fd00::1"],
  ["a link", "fe80::1"],
  ["a link with its zone", "fe80::1%eth0"],
  ["a site", "fec0::1"],
  ["multicast", "ff02::1"],
  ["no address", "example.com"],
  ["no address", ""],
  ["no address", "127.1"],
])("an address is not public as %s: %s", (_, address) => expect(isPublicAddress(address)).toBe(false));

test("an address is not public as any address of IPv4 inside one of IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      for (const prefix of ["::ffff:", "64:ff9b::", "::"]) expect(isPublicAddress(prefix + address)).toBe(false);
    }),
  );
});
