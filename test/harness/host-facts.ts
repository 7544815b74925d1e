import type { HostFacts } from "../../services/cli/service/service-manager.ts";

/** A person's account on a Linux host with systemd. */
export const linuxUser: HostFacts = {
  platform: "linux",
  isAdministrator: false,
  userName: "ann",
  userId: 1000,
  home: "/home/ann",
  hasSystemd: true,
  environment: {},
};
export const linuxRoot: HostFacts = { ...linuxUser, isAdministrator: true, userName: "root", userId: 0, home: "/root" };
export const macUser: HostFacts = { ...linuxUser, platform: "darwin", userId: 501, home: "/Users/ann" };
export const windowsAdministrator: HostFacts = {
  ...linuxUser,
  platform: "win32",
  isAdministrator: true,
  userName: "Ann",
  userId: 0,
  home: "C:\\Users\\Ann Lee",
  environment: { LOCALAPPDATA: "C:\\Users\\Ann Lee\\AppData\\Local", USERDOMAIN: "DESK" },
};
