import { call } from './api.js'
import { recallDevice, remember } from './credential.js'

/** Whether this browser can be remembered: it is paired as a device then. */
export async function canPair() {
  const { enabled } = await call('GET', '/api/pairing').catch(() => ({ enabled: false }))
  return enabled
}

/** Pairs this browser as a device. Needs the API key; throws what the daemon says. */
export async function rememberBrowser() {
  const { pairing_code } = await call('POST', '/api/pairing/request')
  const platform = platformName()
  const device = { pairing_code, display_name: `Browser, ${platform}`, platform }
  const { device_id: id, api_key: key } = await call('POST', '/api/pairing/complete', device)
  if (remember({ key, device: id })) return
  await call('DELETE', `/api/pairing/devices/${encodeURIComponent(id)}`)
  throw new Error('It stores nothing for this page.')
}

/** Whether this browser is remembered as the device with this id. */
export const isThisBrowser = (id) => recallDevice()?.device === id

function platformName() {
  const systems = { Android: /Android/, iOS: /iPhone|iPad/, Linux: /Linux|X11/, Windows: /Windows/, macOS: /Mac/ }
  const found = Object.entries(systems).find(([, pattern]) => pattern.test(navigator.userAgent))
  return found?.[0] ?? 'unknown system'
}
