/** The forms in which a call is sent: Standard Webhooks, and those that services for people read. The browser loads this file. */
export const alertFormats = ["standard", "slack", "discord", "ntfy", "plain"] as const;
export type AlertFormat = (typeof alertFormats)[number];
