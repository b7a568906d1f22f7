import { randomUUID } from 'node:crypto'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceConfined, toIso } from 'svc/internal'
import type { Vault } from 'svc/sdk'
import type { Devices } from './devices.ts'
import type { DeviceStore } from './paired/store.ts'

const FILE = 'paired-devices.json'
const TAKEN_OVER = 'older-devices'

export interface OlderDevicesDeps {
  readonly home: string
  readonly vault: Vault
  readonly store: DeviceStore
  readonly devices: Devices
}

/**
 * Devices of the version before have no proof. They get it once: when a home first starts with this version and no other
 * daemon on its database did so before. The first is noted in the home and the second in the vault, so a row that is
 * written later lets nobody in, and deleting the record of the vault does not help.
 */
export async function takeOverOlder({ home, vault, store, devices }: OlderDevicesDeps): Promise<void> {
  if (await exists(join(home, FILE))) return
  if ((await vault.read(TAKEN_OVER)) === undefined) {
    const older = (await store.devices()).filter(({ proof }) => proof === null)
    const proofs = await Promise.all(older.map(async (row) => store.prove(row.id, await devices.proofOf(row))))
    // Every text in the vault counts as a secret: one that stands nowhere else.
    await vault.write(TAKEN_OVER, randomUUID(), proofs)
  }
  await replaceConfined(home, FILE, `${JSON.stringify({ older_devices_taken_over: toIso(Date.now()) })}\n`)
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
