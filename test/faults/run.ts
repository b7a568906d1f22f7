/** `npm run faults [name] [-- --rounds N --seed S]`: the long forms. One JSON line a fault, exit code 1 when one fails. */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { crash } from './crash.ts'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string', default: String(Date.now() % 1_000_000) } } })
const faults = {
  crash: () => crash({ rounds: Number(values.rounds), seed: Number(values.seed), built: true }),
  // The same test as in `npm test`, with a hundred reloads.
  reload: () => {
    const { status } = spawnSync('npx', ['vitest', 'run', '--config', 'test/vitest.config.ts', 'test/faults/reload'], { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, SVC_RELOADS: '100' } })
    return { problems: status === 0 ? [] : [`the test ended with ${status}`] }
  },
}
type Name = keyof typeof faults
const names = positionals.length > 0 ? positionals : Object.keys(faults)
for (const name of names) {
  const run = faults[name as Name]
  if (!run) { console.error(`no such fault: ${name}; there are: ${Object.keys(faults).join(', ')}`); process.exit(2) }
  const report = await run()
  console.log(JSON.stringify({ fault: name, passed: report.problems.length === 0, ...report }))
  if (report.problems.length > 0) process.exitCode = 1
}
