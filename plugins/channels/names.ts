/** Other names that requests and the configuration may use. */
const aliases: Readonly<Record<string, string>> = {
  lark: 'feishu',
  stoat: 'revolt',
  facebook: 'messenger',
  nextcloud_talk: 'nextcloud',
}
/** The name of a channel for any of its names. */
export const canonicalName = (name: string): string => (Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name)

/** Platforms that exist no more, and why. */
const retired: Readonly<Record<string, string>> = {
  guilded: 'Guilded closed in December 2025',
}
/** Why there is no such platform any more. */
export const retirementOf = (name: string): string | undefined =>
  Object.hasOwn(retired, name) ? retired[name] : undefined
