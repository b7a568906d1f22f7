import type { ChannelSetup } from 'svc/channels'

export interface SetupGuide {
  /** Letters for a tile. */
  readonly icon: string
  readonly difficulty: 'Easy' | 'Medium' | 'Hard'
  readonly setup_time: string
  /** All of it in one sentence. */
  readonly quick_setup: string
  readonly setup_type: 'form'
  readonly setup_steps: string[]
}

const DIFFICULTIES = { easy: 'Easy', medium: 'Medium', hard: 'Hard' } as const
const unknownSetup = (title: string): ChannelSetup => ({
  difficulty: 'medium',
  minutes: 10,
  steps: [`Make an account or an app for the bot at ${title}, and copy its credentials.`],
})

/** How a channel is set up, for people; something general where its declaration does not say. */
export function setupGuide(title: string, setup: ChannelSetup = unknownSetup(title)): SetupGuide {
  const { icon, difficulty, minutes, steps } = setup
  return {
    icon: icon ?? title.slice(0, 2),
    difficulty: DIFFICULTIES[difficulty],
    setup_time: `about ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`,
    quick_setup: steps[0] ?? '',
    setup_type: 'form',
    setup_steps: [...steps, 'Fill in the form, choose the agent that answers, and say who may write to it.'],
  }
}
