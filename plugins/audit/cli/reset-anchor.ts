import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine, defineCommand, exits, homeArgs, locateHome, openStoppedHome, print, printJson } from 'svc/cli'

export default defineCommand({
  description:
    'Accept the end of the audit trail as it is at the next start: after its database was restored from an older copy, ' +
    'or its anchor was lost. The trail records it, with where the anchor was before. The daemon must be stopped.',
  args: homeArgs,
  examples: [['svc audit reset-anchor', 'after pg_restore, in every home that uses the database']],
  async run(args) {
    using home = await openStoppedHome(locateHome(args))
    const anchor = join(home.config.home_dir, 'audit.anchor')
    // What `anchor.ts` looks for.
    const replaced = `${anchor}.replaced`
    const isThere = existsSync(anchor)
    // One that was replaced and not yet set anew is the one to record.
    if (isThere) renameSync(anchor, replaced)
    else if (!existsSync(replaced)) writeFileSync(replaced, '', { mode: 0o600, flush: true })
    if (args.json) printJson({ status: 'reset', replaced: isThere })
    else
      print(
        `${isThere ? 'the anchor is set aside' : 'there is no anchor'}: the next start sets it to the end of the trail\n` +
          `start it with ${commandLine('start')}, then check with ${commandLine('audit verify')}`,
      )
    return exits.ok
  },
})
