import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '钉',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'In the developer console, open-dev.dingtalk.com, make an internal app, and add the robot to it.',
    'In the settings of the robot choose the Stream mode, or the HTTP mode with the address of the webhook.',
    'Copy the Client ID (AppKey) and the Client Secret (AppSecret) of "Credentials and basic information".',
    'Give the app the permission to send messages as a robot (qyapi_robot_sendmsg), and release a version.',
    'Add the robot to the groups where it should answer.',
  ],
} satisfies ChannelSetup
