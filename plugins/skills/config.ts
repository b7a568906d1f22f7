import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'

const limit = 'a limit that costs memory or time, and lets nobody in'

const address = (description: string) =>
  v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'must be an http or https address'), v.description(description))

export const Settings = fileOnly(
  'says whose text and code agents work with',
  v.object({
    sources: v.optional(
      v.pipe(
        v.array(v.picklist(['folder', 'archive', 'url', 'hub'])),
        v.description('Where skills may be installed from over the API. An empty list permits none.'),
      ),
      ['folder', 'archive', 'url', 'hub'],
    ),
    clawhub_url: v.optional(
      address('Where skills of `hub:` are searched and fetched: a hub that speaks as ClawHub does.'),
      'https://clawhub.ai',
    ),
    marketplace_url: v.optional(
      address('Where skills of `marketplace:` are searched and fetched: the API of GitHub, or one like it.'),
      'https://api.github.com',
    ),
    marketplace_query: v.optional(
      v.pipe(v.string(), v.maxLength(200), v.description('Words that are added to each search of the marketplace.')),
      'topic:agent-skills',
    ),
    hub_cache_secs: settable(limit, fields.integer('Seconds that answers of hubs are kept.', 120, 0, 3600)),
    max_archive_bytes: settable(
      limit,
      fields.integer('Largest archive of a skill that is downloaded or read.', 10_485_760, 1024, 268_435_456),
    ),
    max_unpacked_bytes: settable(
      limit,
      fields.integer('Bytes of all files of a skill.', 20_971_520, 1024, 268_435_456),
    ),
    max_files: settable(limit, fields.integer('Files of a skill.', 500, 1, 10_000)),
    disabled: settable(
      'takes a skill away from agents, or gives back one that is installed',
      fields.texts('Names of skills that no agent has.'),
    ),
    prompt_chars: settable(
      limit,
      fields.integer(
        'Characters of a system prompt that name and describe skills. What is more is cut: descriptions first.',
        24_000,
        500,
        200_000,
      ),
    ),
    read_file_bytes: settable(
      limit,
      fields.integer('Largest file of a skill that an agent reads with skill_read_file.', 262_144, 1024, 16_777_216),
    ),
    timeout_secs: settable(limit, fields.integer('Seconds a tool of a skill may take.', 60, 1, 120)),
    max_output_bytes: settable(
      limit,
      fields.integer('Bytes that a tool of a skill may write as its answer.', 262_144, 1024, 16_777_216),
    ),
    max_output_files: settable(
      limit,
      fields.integer('Files that one call of a skill with files:write may leave in the workspace.', 20, 1, 1000),
    ),
    wasm_fuel: settable(
      limit,
      fields.integer('Instructions that a WebAssembly tool may run.', 100_000_000, 1000, 100_000_000_000),
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
