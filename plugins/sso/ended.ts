import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const EndedSignIn = v.object({
  /** ISO 8601 UTC: from then on it is of no use to anybody. */
  expires_at: v.string(),
})

/** Sign-ins that this home knows to be ended before their time, by id: the row of one that is put back lets nobody in. */
export class EndedSignIns extends HomeRecord<typeof EndedSignIn> {
  constructor(home: string) {
    super(home, 'ended-sign-ins.json', EndedSignIn, (entries) => {
      const now = new Date().toISOString()
      return entries.filter(([, { expires_at: at }]) => at > now)
    })
  }
}
