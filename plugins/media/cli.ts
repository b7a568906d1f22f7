import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'media',
  commands: {
    media: {
      summary: 'Have pictures, speech and transcriptions made for an agent',
      load: () => import('./cli/providers.ts'),
      commands: {
        image: { summary: 'Have pictures made', load: () => import('./cli/image.ts') },
        speak: { summary: 'Have a text read aloud', load: () => import('./cli/speak.ts') },
        transcribe: { summary: 'Have a recording written down', load: () => import('./cli/transcribe.ts') },
      },
    },
  },
  checks: { media: { load: () => import('./cli/check.ts') } },
})
