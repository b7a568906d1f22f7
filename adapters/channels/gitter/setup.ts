import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'GI',
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'Sign in to app.gitter.im as the bot, with an account of GitHub or GitLab; or make an account on another Matrix homeserver.',
    'In the app, under All settings, Help & About, Advanced, copy the access token.',
    'Do not sign out afterwards, as that ends the token: close the window instead.',
    'Name the rooms: the room org/repo has the address #org_repo:gitter.im.',
  ],
} satisfies ChannelSetup
