import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 15,
  steps: [
    'Sign in at q.qq.com, and under "机器人" (bots) create a bot.',
    'Open its page "开发设置" (development settings): the AppID is `app_id`, and the AppSecret is `token`.',
    'Until the bot is published, add yourself and a test group on its page "沙箱配置" (sandbox settings).',
    'Addresses of sites that answers may contain have to be listed under "消息URL配置", or QQ refuses the answers.',
    'For `mode = "webhook"` enter the address of the webhook under "回调配置" (callbacks), and choose the message events.',
  ],
} satisfies ChannelSetup
