import { v7, validate, version } from 'uuid'
import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const AdoptedSkill = v.object({
  /** Of its row. One that is not later is not adopted any more. */
  revision: v.string(),
})

/** The last change of each skill that a home has made or adopted. */
export class AdoptedSkills extends HomeRecord<typeof AdoptedSkill> {
  constructor(home: string) {
    super(home, 'shared-skills.json', AdoptedSkill)
  }

  /** Whether this home has a later change of the skill, or another one of the same time. */
  async isOlder(name: string, revision: string): Promise<boolean> {
    const last = await this.find(name)
    return last !== undefined && last.revision !== revision && timeOf(revision) <= timeOf(last.revision)
  }
  /** Later than these and all that the home has, whatever its clock says. */
  async nextRevision(revisions: readonly string[]): Promise<string> {
    const known = [...revisions, ...[...(await this.all()).values()].map(({ revision }) => revision)]
    return v7({ msecs: Math.max(Date.now(), ...known.map((each) => timeOf(each) + 1)) })
  }
}

/** Milliseconds since 1970; 0 for a revision of the version before, which says nothing of time. */
function timeOf(revision: string): number {
  return validate(revision) && version(revision) === 7
    ? Number.parseInt(revision.replaceAll('-', '').slice(0, 12), 16)
    : 0
}
