// Numbers as a person reads them. Money stays a decimal text until the very end: no floating point.

import type { MiB, NanoUsd, UnixMillis } from "./backend/bindings";

/** The locale for numbers: the system's own where it speaks the page's language, else the language alone. */
export function localeFor(language: string): string {
  const own = typeof navigator === "undefined" ? "" : navigator.language;
  return own.split("-")[0] === language ? own : language;
}

/**
 * An amount in dollars: cents, and below one cent the first two digits that are not zero.
 * Cut, never rounded up: the page shows no money that is not there, and none of what is there as zero.
 */
export function money(nano: NanoUsd, locale: string): string {
  const decimals = 2 + Math.max(0, zerosAfterCents(nano));
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: decimals,
    roundingMode: "trunc",
  } as Intl.NumberFormatOptions).format(dollars(nano) as `${number}`);
}

/** How many more decimals than two an amount under a cent needs to show its first two digits. */
function zerosAfterCents(nano: NanoUsd): number {
  const size = Math.abs(nano);
  if (size === 0 || size >= 10_000_000) return 0;
  return 9 - String(size).length;
}

/** The exact amount in dollars, as text. */
function dollars(nano: NanoUsd): string {
  const digits = String(Math.abs(nano)).padStart(10, "0");
  return `${nano < 0 ? "-" : ""}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

/** Memory: MiB under one GiB, else GiB with one decimal. */
export function memory(size: MiB, locale: string): string {
  const number = (value: number, decimals: number) =>
    new Intl.NumberFormat(locale, { maximumFractionDigits: decimals }).format(value);
  return size < 1024 ? `${number(size, 0)} MiB` : `${number(size / 1024, 1)} GiB`;
}

/** Seconds with one decimal, from milliseconds: rounded up, so that nothing reads faster than it was. */
export function seconds(milliseconds: number, locale: string): string {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: 1, minimumFractionDigits: 1 }).format(
    Math.max(1, Math.ceil(milliseconds / 100)) / 10,
  );
}

export function number(value: number, locale: string, decimals = 0): string {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: decimals }).format(value);
}

/** The time of day, and the date when it is not today. */
export function moment(at: UnixMillis, now: UnixMillis, locale: string): string {
  const today = new Date(at).toDateString() === new Date(now).toDateString();
  return new Intl.DateTimeFormat(locale, {
    ...(today ? {} : { day: "numeric", month: "short" }),
    hour: "numeric",
    minute: "2-digit",
  }).format(at);
}
