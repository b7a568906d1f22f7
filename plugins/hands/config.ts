import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** `[plugins.hands]`. */
export const Settings = fileOnly(
  'says which agents work by themselves, and what is installed for them',
  v.object({
    sources: v.optional(
      v.pipe(
        v.array(v.picklist(['toml', 'folder', 'bundled'])),
        v.description('What hands may be installed from over the API. An empty list permits nothing.'),
      ),
      ['toml', 'folder', 'bundled'],
    ),
    install_programs: fields.flag(
      'Whether missing programs may be installed with the commands of a definition, after an approval.',
      {},
      true,
    ),
    max_instances: fields.integer('Instances of hands, paused ones too.', 50, 1, 10_000),
    interval_secs: fields.integer('Seconds between runs of a hand whose definition names none.', 3600, 60, 86_400),
    install_timeout_secs: fields.integer('Seconds that one command of an installation may take.', 300, 1, 3600),
    approval_secs: fields.integer('Seconds a person has to approve an installation.', 300, 10, 3600),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
