/**
 * `npm run bench [name …] [-- --minutes N] [--beside FOLDER]`: every figure as a ratio against a floor measured in the
 * same run, round by round in turns, so that a noisy machine disturbs both. `FOLDER` holds another build, in `dist`,
 * that `realistic-turn` is measured beside. Nothing here is asserted by a test.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { figures } from './figures.ts'
import type { Result } from './figures.ts'

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string' }, beside: { type: 'string' } },
})
const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
if (minutes !== undefined && !(minutes > 0)) {
  console.error('--minutes: expected a number above 0')
  process.exit(2)
}
const chosen = wanted.length > 0 ? figures.filter((figure) => wanted.includes(figure.name)) : figures
if (chosen.length === 0) {
  console.error(`no such figure; there are: ${figures.map((figure) => figure.name).join(', ')}`)
  process.exit(2)
}
console.log(`Node ${process.version}, ${process.platform} ${process.arch}\n`)
const rows: (readonly string[])[] = [['figure', 'svc', 'floor', 'ratio', 'to reach', '']]
for (const figure of chosen) {
  process.stderr.write(`${figure.name} …\n`)
  let results: readonly Result[]
  try {
    results = await figure.measure(minutes, values.beside && resolve(values.beside))
  } catch (error) {
    rows.push([figure.name, 'failed', '', '', '', error instanceof Error ? error.message.slice(0, 200) : String(error)])
    continue
  }
  for (const { label, value, floor, ratio, goal, reached } of results)
    rows.push([label, value, floor, ratio, goal, reached === undefined ? '' : reached ? 'reached' : 'MISSED'])
}
const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length))) ?? []
for (const row of rows)
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
