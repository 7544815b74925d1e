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
  ["this host or nothing", "0.0.0.0 ::"],
  ["loopback", "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1"],
  ["a private network", "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1"],
  ["a carrier's network", "100.64.0.1"],
  ["metadata of a cloud", "169.254.169.254"],
  ["documentation or benchmarks", "192.0.2.1 198.19.0.1 2001:db8::1 3fff::1"],
  ["multicast or broadcast", "224.0.0.1 255.255.255.255 ff02::1"],
  ["reserved", "240.0.0.1"],
  ["an address of IPv4, mapped", "::ffff:a00:1 ::ffff:1.1.1.1"],
  ["a private network of IPv4, by NAT64, 6to4 or Teredo", "64:ff9b::10.0.0.1 2002:a00:1::1 2001:0:a00:1::1"],
  ["a network of IPv6 that is local", "fd00::1 fe80::1 fe80::1%eth0 fec0::1"],
  ["no address", "example.com 127.1"],
])("an address is not public as %s: %s", (_, addresses) => {
  for (const address of addresses.split(" ")) expect(isPublicAddress(address), address).toBe(false);
  expect(isPublicAddress("")).toBe(false);
});

test("an address is not public as any address of IPv4 inside one of IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      for (const prefix of ["::ffff:", "64:ff9b::", "::"]) expect(isPublicAddress(prefix + address)).toBe(false);
    }),
  );
});
