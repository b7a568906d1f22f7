import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'GC',
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'In a project of the Google Cloud console enable the Google Chat API, and copy the project number of the page Welcome.',
    'Under "IAM & Admin", "Service Accounts" make a service account without roles, and under Keys a key of the type JSON: its content is the token.',
    'On the page Configuration of the Google Chat API name the app, and switch on interactive features.',
    'As the connection settings choose the HTTP endpoint URL, enter the address of the webhook, and choose its authentication audience: the project number, or the same address.',
    'Under Visibility choose who may use the app, save, and add it to a space or write to it.',
  ],
} satisfies ChannelSetup
