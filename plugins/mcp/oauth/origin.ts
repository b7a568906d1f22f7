import type { Settings } from '../config.ts'

/** Where a browser reaches this daemon, without a path. `listening`: the address it listens on, once it does. */
export function originOf(
  { public_url: url }: Pick<Settings, 'public_url'>,
  listening: string | undefined,
  listenAddr: string,
): string {
  const own = listening ?? `http://${listenAddr}`
  return (url ?? own).replace(/\/+$/, '').replace(/(?<=:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, '127.0.0.1')
}

/** Whether authorization servers reach this daemon too. */
export function isPublic({ public_url: url }: Pick<Settings, 'public_url'>): boolean {
  return url?.startsWith('https:') === true
}
