import { passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { listFiles } from './client.ts'

/** Whether every file in the folder of workflows is in force. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const files = await listFiles(daemon)
  const wrong = files.flatMap(({ file, problem }) => (problem === null ? [] : [`workflows/${file}: ${problem}`]))
  if (wrong.length > 0) return warned(wrong.join('; '), 'correct the file: it is read again at once')
  return passed(files.length === 0 ? 'no files' : `${files.length} in force`)
}
export default check
