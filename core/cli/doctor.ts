import { runChecks } from './doctor-checks.ts'
import { defineCommand, homeArgs } from './command.ts'
import { exits } from './failure.ts'
import { print, printJson } from './output.ts'
import { locateHome } from './home-location.ts'

export default defineCommand({
  description: 'Check this installation: Node, home, configuration, port, database and disk, and what plugins check.',
  args: homeArgs,
  examples: [
    ['svc doctor', 'what is wrong and what to do'],
    ['svc doctor --json', 'the same for a script; the exit code is 1 when a check fails, 0 with warnings'],
  ],
  async run(args) {
    const checks = await runChecks(locateHome(args))
    if (args.json) printJson({ ok: checks.every((check) => check.state !== 'fail'), checks })
    else {
      const signs = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const
      for (const { name, state, found, advice } of checks)
        print(`${signs[state]}  ${name.padEnd(14)} ${found}${advice === undefined ? '' : `\n      -> ${advice}`}`)
      const failed = checks.filter((check) => check.state === 'fail').length
      const warned = checks.filter((check) => check.state === 'warn').length
      print(`\n${summarize(checks.length, failed, warned)}`)
    }
    return checks.some((check) => check.state === 'fail') ? exits.failed : exits.ok
  },
})

function summarize(count: number, failed: number, warned: number): string {
  if (failed + warned === 0) return 'Everything needed is there.'
  const warnings = `${warned} ${warned === 1 ? 'warns' : 'warn'}`
  if (failed === 0) return `No check failed; ${warnings}.`
  return `${failed} of ${count} checks failed${warned === 0 ? '' : `, and ${warnings}`}.`
}
