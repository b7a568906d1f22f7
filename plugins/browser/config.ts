import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'

/** `[plugins.browser]`. */
export const Settings = settable(
  'says how much of pages agents see, and for how long; where they may go is in [outbound] and their manifests',
  v.object({
    chromium_path: fileOnly(
      'says which program is started',
      v.optional(
        v.pipe(
          v.string(),
          v.check(isAbsolute, 'an absolute path'),
          v.description(
            'Chromium, Chrome or chromium-headless-shell; searched for in the folders of the system when unset.',
          ),
        ),
      ),
    ),
    viewport_width: fields.integer('Width of the window, in pixels.', 1280, 320, 3840),
    viewport_height: fields.integer('Height of the window, in pixels.', 720, 240, 2160),
    timeout_secs: fields.integer('Seconds that one step in a page may take.', 30, 1, 120),
    hang_timeout_secs: fields.integer(
      'Seconds after which a page whose scripts let nothing else run is closed.',
      10,
      1,
      60,
    ),
    idle_timeout_secs: fields.integer('Seconds after which an unused browser is closed.', 300, 1, 86_400),
    max_life_secs: fields.integer('Seconds after which a browser is closed, used or not.', 3600, 60, 86_400),
    max_sessions: fields.integer('Browsers that may be open at a time, one for each agent.', 5, 1, 50),
    max_content_chars: fields.integer(
      'Characters of a page, or of the result of a script, that an agent is given.',
      50_000,
      100,
      1_000_000,
    ),
    max_download_bytes: fields.integer(
      'Largest file that a page may put into the workspace, in bytes.',
      52_428_800,
      1,
      268_435_456,
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
