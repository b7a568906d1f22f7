import * as v from 'valibot'
import type { Api } from './api.ts'
import type { DeviceCredential } from './credential.ts'
import { ask } from './sign-in.ts'

const Pairing = v.object({ enabled: v.boolean() })

/** Whether this browser can be remembered: it is paired as a device then. */
export async function canPair(): Promise<boolean> {
  const answer = v.safeParse(Pairing, await ask('/api/pairing'))
  return answer.success && answer.output.enabled
}

/** Pairs this browser as a device. Needs the API key. */
export async function pairBrowser(api: Api): Promise<DeviceCredential> {
  const platform = platformName()
  const { device_id: device, api_key: key } = await api.pair({
    pairing_code: await api.pairingCode(),
    display_name: `Browser, ${platform}`,
    platform,
  })
  return { key, device }
}

/** As the page Devices shows it: Linux, Windows, macOS. */
function platformName(): string {
  const systems = { Android: /Android/, iOS: /iPhone|iPad/, Linux: /Linux|X11/, Windows: /Windows/, macOS: /Mac/ }
  const found = Object.entries(systems).find(([, pattern]) => pattern.test(navigator.userAgent))
  return found?.[0] ?? 'unknown system'
}
