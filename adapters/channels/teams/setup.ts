import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'MT',
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'In the Azure portal make a resource "Azure Bot" of the type "Single Tenant": its page Configuration shows the Microsoft App ID and the App Tenant ID.',
    'Under "Manage Password" make a client secret, and copy its value: it is shown once.',
    'As the messaging endpoint of the bot enter the address of the webhook, and under Channels add Microsoft Teams.',
    'In the Teams Developer Portal make an app with a bot that has this App ID, for personal chats, group chats and teams.',
    'Publish the app to your organization, or download it and upload it to Teams, and add it where it should answer.',
  ],
} satisfies ChannelSetup
