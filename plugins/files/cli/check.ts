import * as v from 'valibot'
import { failed, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'

const PART = 'files: '

/** Whether the bucket or the shared folder of the files works, as far as the daemon has noticed. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { config_warnings: warnings } = await daemon.call(
    'GET',
    '/api/health/detail',
    v.looseObject({ config_warnings: v.array(v.string()) }),
  )
  const found = warnings.filter((warning) => warning.startsWith(PART)).map((warning) => warning.slice(PART.length))
  if (found.some((warning) => warning.startsWith('plugins.files.path')))
    return failed(found.join('; '), 'mount the folder; svc notices by itself')
  if (found.length > 0 && found.every((warning) => warning.startsWith('the clock')))
    return warned(found.join('; '), 'set the clock, since the bucket refuses requests of a wrong one')
  return found.length === 0
    ? passed('within reach')
    : warned(found.join('; '), 'large files cannot be read or written until this is repaired; svc notices by itself')
}
export default check
