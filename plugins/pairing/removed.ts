import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const RemovedDevice = v.object({
  /** ISO 8601 UTC: when this home heard of it. */
  removed_at: v.string(),
})

/** Devices that this home knows to be removed, by id: the row of one that is put back lets nobody in here. */
export class RemovedDevices extends HomeRecord<typeof RemovedDevice> {
  constructor(home: string) {
    super(home, 'removed-devices.json', RemovedDevice)
  }
}
