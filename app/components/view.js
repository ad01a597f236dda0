// The empty component beside each piece: hands its few numbers over without resending the piece's data.
const owners = new Map();

function handOver(channel, view) {
  const shared = (window.attentionExplorer ??= { views: new Map() });
  shared.views.set(channel, view);
  window.dispatchEvent(new CustomEvent("attention-explorer:view", { detail: { channel } }));
}

export default function ({ data, key }) {
  const { channel, view } = data;
  owners.set(channel, key);
  handOver(channel, view);
  return () => {
    // A page left and entered again must not start from the view it was left with; but another
    // instance may already have taken the channel over.
    if (owners.get(channel) !== key) return;
    owners.delete(channel);
    window.attentionExplorer.views.delete(channel);
  };
}
