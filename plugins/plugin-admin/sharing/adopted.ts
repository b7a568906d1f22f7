import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const AdoptedChange = v.object({
  /** Its id. */
  change: v.string(),
  /** ISO 8601 UTC: when it was made. One that is not later is not adopted any more. */
  changed_at: v.string(),
})

/** The last change of each plugin that a home has made or adopted. */
export class AdoptedChanges extends HomeRecord<typeof AdoptedChange> {
  constructor(home: string) {
    super(home, 'shared-plugins.json', AdoptedChange)
  }
  /** Milliseconds since 1970 of the last change; 0 when there was none. */
  async latest(): Promise<number> {
    return Math.max(0, ...[...(await this.all()).values()].map((one) => Date.parse(one.changed_at)))
  }
}
