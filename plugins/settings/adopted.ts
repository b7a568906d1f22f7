import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const AdoptedSetting = v.object({
  /** The id of the change. */
  change: v.string(),
  /** Of the value the key had then. */
  digest: v.string(),
  /** Of the change: one that is not above it is not adopted any more. The version before did not keep it. */
  number: v.optional(v.number()),
})

/** What a home has adopted of the settings that daemons share. */
export class AdoptedSettings extends HomeRecord<typeof AdoptedSetting> {
  constructor(home: string) {
    super(home, 'shared-settings.json', AdoptedSetting)
  }
  /** The highest number of a change. */
  async highest(): Promise<number> {
    return Math.max(0, ...[...(await this.all()).values()].map(({ number = 0 }) => number))
  }
}
