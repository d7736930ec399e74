"""The words by which `memlane.core.instructions` knows what a sentence is about, in ten languages.

In lower case and without accents, as `instructions` folds a text; `*` stands for any ending. Chinese, Japanese and
Korean are not written in separate words, so theirs are found anywhere in a run of text. A word may stand for several
things. Real words only: each one is weighed against harmless notes in its language (`bench/gate instructions`).
"""

from __future__ import annotations

WORDS = {
    # -- what is to be set aside
    "OVERRIDE": """
        uberschreibe uberschreiben discard dismiss cancel nullify supersede ignore disregard forget override
        bypass neglect overrule abandon unlearn ignorier ignoriere ignorieren vergiss vergesst vergessen
        missachte missachten ubergehe umgehe verwirf ignorez ignorer oublie oubliez oublier neglige negligez
        contourne contournez outrepasse outrepassez ignora ignoren ignorar olvida olvide olviden olvidar
        olvidate olvidese desatiende descarta omite omiso esqueca esquecam esquece esquecer desconsidere
        desconsidera despreze ignorem ignorare ignorate dimentica dimenticare dimenticate tralascia trascura
        игнорируй* игнорировать проигнорируй* забудь* отбрось* пренебреги* 忽略 忽视 無視 无视 忘记 忘掉 忘れ
        别管 不理会 抛开 破棄 무시 잊어 잊고 잊으""",
    "VOID": """
        superseded replaced expired void revoked rescinded nullified suspended lifted removed disabled
        deactivated off aufgehoben ungultig hinfallig caduques caducs annulees annules revoquees anuladas
        canceladas revogadas annullate annullati отменены отменяются недействительны 无效 失效 作废 取消 無効
        무효 취소""",
    "APPLY": """
        apply applies binding gelten gilt s'appliquent s'applique aplican aplica aplicam applicano valgono
        действуют действует 适用 适用于 適用 적용""",
    "RULE": """
        programmierung programmation programacion programacao programmazione программирован* systemanweisung
        systemanweisungen systemnachricht sicherheitsrichtlinien sicherheitsregeln 提示 编程 instruction
        instructions prompt prompts rules directive directives guideline guidelines policies policy directions
        orders programming training commands anweisung anweisungen regeln vorgabe vorgaben richtlinie
        richtlinien instruktionen befehle systemprompt consigne consignes regles ordres instruccion
        instrucciones reglas directriz directrices indicaciones ordenes instrucao instrucoes regras orientacoes
        diretrizes comandos istruzione istruzioni regole direttive indicazioni ordini инструкци* указани*
        правила директив* команды распоряжени* промпт* 指令 指示 规则 規則 提示词 命令 守则 ルール プロンプト
        方針 지시 지침 명령 규칙 프롬프트""",
    "AGENT_FILE": "claude.md agents.md gemini.md .cursorrules cursorrules copilot-instructions.md",
    "PRIOR": """
        previous prior above earlier preceding former foregoing original initial existing old given received
        told past developer's operator's know known said gesagt dit dicho dito detto сказано сказанное 说过
        言われた 말한 vorherige* bisherige* obige* obenstehende* fruhere* vorige* ursprungliche* precedent*
        anterieur* ci-dessus prealable* recues recu jusqu'ici anterior anteriores previo previa previos previas
        recibidas recebidas precedenti precedente anteriori ricevute предыдущ* прежн* прошл* ранее полученн*
        之前 以前 先前 上述 以上 前面 此前 原来 原有 先の 前の これまで 今まで 上記 先ほど 従来 元の 与えられた
        이전 지금까지 앞의 앞선 위의 기존""",
    "YOUR": """
        ta your deine deinen deiner deines dein tes vos ton votre tus tu suas tua tuas sua teus seu seus tue tuo
        tuoi vostre твои твой твоя твоих твоё свои свой своих ваши ваших 你的 您的 あなたの 당신의 너의 네""",
    "ALL": """
        all every everything any whatever alle allen alles jegliche samtliche tout tous toute toutes todo todos
        toda todas cualquier qualquer quaisquer tutto tutti tutte qualsiasi все всё всем всех любой любую любые
        любое 所有 一切 全部 任何 すべて 全て あらゆる 모든 전부 모두""",
    "SYSTEM": "system systems systeme sistema системн* системы 系统 システム 시스템",
    "SECRETIVE": """
        initialization initialisation unabridged verbatim hidden initial internal secret geheime geheimen
        versteckten cache caches internes initiales ocultas ocultos internas iniciales iniciais nascoste interne
        iniziali скрыт* внутренн* 隐藏 内部 初始 隠された 内部の 初期 숨겨진 내부 초기""",
    "NEW": """
        new updated real actual neue neuen neuer nouvelle nouvelles nueva nuevas nova novas nuove nuova новые
        новая новую 新的 新指令 新しい 새로운""",
    # -- who is spoken to, and who is spoken of
    "AGENT": """
        ai ais ai's a.i assistant assistant's assistants agent agents model llm llms claude chatgpt gpt gemini
        copilot codex chatbot bot ki kis ki-agent ki-agenten ki-assistent ki-assistenten ki-modell ki-modelle
        assistent assistenten agenten modell sprachmodell ia l'ia l'assistant l'agent modele asistente
        asistentes agente agentes modelo assistente assistentes assistenti agenti modello l'assistente l'agente
        ии ии-агент* ии-ассистент* ассистент* агент агенты агента агентов агенту агентам нейросет* нейросеть бот
        助手 智能体 代理程序 模型 人工智能 アシスタント エージェント モデル 人工知能 어시스턴트 에이전트 모델
        인공지능""",
    "YOU": """
        you you're you'll du dich dir tu t'es vous te usted ustedes voce voces voi lei ты вы тебе тебя вам вас
        你 您 あなた 君は 당신 너는 넌""",
    "USER": """
        user's owner's user human owner operator maintainer developer person anyone anybody nobody someone
        reviewer reviewers supervisor customer benutzer nutzer anwender benutzers nutzers menschen besitzer
        entwickler niemandem niemand jemandem utilisateur l'utilisateur humain l'humain proprietaire developpeur
        personne usuario usuaria humano propietario desarrollador nadie dueno utilizador ninguem desenvolvedor
        utente all'utente l'utente sviluppatore nessuno umano пользовател* человек* владельц* разработчик*
        никому 用户 用戶 使用者 开发者 任何人 主人 ユーザー ユーザ 利用者 開発者 誰にも 人間 사용자 개발자
        아무에게도 유저""",
    "ADMIN": """
        admin administrator administrators sysadmin anthropic openai deepmind systemadministrator
        systemadministrators sicherheitsteam administrateur l'administrateur administrador administradora
        amministratore l'amministratore dall'amministratore администратор* админ* 管理员 管理者 관리자""",
    # -- keeping something from somebody
    "NOT": """
        not no never don't dont without cannot can't mustn't shouldn't needn't nor neither refrain nicht nie
        niemals kein keine keinen keiner keinerlei ohne nichts ne n' n'en n'es pas jamais sans aucun aucune rien
        nunca sin ni ningun ninguna nada jamas nao sem nenhum nenhuma non mai senza nessun nessuna не без ни
        никогда нельзя 不要 不得 不能 不许 不可 切勿 请勿 别 勿 无需 无须 不用 不必 不再 不受 没有 未经 绝不
        ないで ないよう せずに ずに なしで なしに しない 不要で なく のない てはいけ てはなら ません 禁止 말고
        말아 마세요 마십시오 말것 말 없이 않고 않도록 없는""",
    "TELL": """
        tell inform mention notify disclose say telling informing mentioning notifying disclosing sage sagen sag
        erwahne erwahnen erwahn informiere informieren verrate verraten mitteilen teile berichte melde dis dites
        dire mentionne mentionnez mentionner informer informe informez parle parlez parler previens prevenir
        avertis avertir signale revele digas diga decir dile menciones mencione mencionar informes informar
        avises avisar reveles cuentes conte contar fale avise dica dirlo menzionare menzioni informare avvisare
        rivelare parlarne говори* сообща* упомина* упоминай рассказыва* расскаж* уведомл* сказа* 告诉 告知 通知
        提及 提到 透露 汇报 说明 伝え 知らせ 報告 言わ 言及 話さ 明かさ 알리 말하 언급 보고하 보고 밝히""",
    "HIDE": """
        hide conceal withhold verschweige verschweigen verheimliche verheimlichen verberge cachez dissimule
        oculta ocultar oculte esconde esconda ocultes nascondi nascondere скрой* скрыва* утаи* 隐瞒 隐藏 瞒着
        隠し 隠す 秘密に 内緒 숨기 숨겨 비밀로""",
    "CONCEAL": """
        conceal withhold verschweige verschweigen verheimliche verheimlichen dissimule dissimulez callate утаи*
        умолчи* 隐瞒 瞒着 保密 秘密に 内緒 伏せ 비밀로 숨기고""",
    "KNOW": """
        knowledge awareness noticing knowing wissens connaissance conocimiento conhecimento ведома 察觉 気付
        know learn notice wissen erfahren merken savoir apprendre saber enterarse saiba sapere scoprire знать
        узнать узнал* 知道 发现 得知 知る 気づ 知られ 알게 알아서는 모르게""",
    "STOP": """
        stop quit cease hor aufhoren arrete arretez cesse deja pare smetti прекрати* перестань* 停止 やめ 중단""",
    "APPROVE": """
        approve accept grant genehmige genehmigen akzeptiere bestatige erlaube approuve approuvez accepte
        acceptez valide autorise aprueba apruebe acepta acepte autoriza concede aprove aceite autorize approva
        accetta autorizza одобр* принимай* прими* разреш* 批准 同意 通过 允许 承認 許可 승인 허용""",
    "REQUEST": """
        request requests prs changes anfragen berechtigungsanfragen anderungen demandes demande modifications
        solicitudes solicitud cambios permisos pedidos solicitacoes alteracoes richieste modifiche запросы
        запрос изменения 请求 变更 申请 変更 リクエスト 要求 요청 변경""",
    "COMMAND": """
        command commands befehl befehle kommando commande commandes comando comandos comandi команды команду
        команд 命令 コマンド 명령""",
    "FROM": "from al aux vor von vom a au de du del da dal от у の から 来自 에게 로부터",
    "SECRETLY": """
        secretly quietly covertly discreetly silently stealthily heimlich unauffallig stillschweigend
        discretement secretement furtivement discretamente secretamente silenciosamente calladamente
        segretamente silenziosamente nascosto тайно незаметно скрытно втайне 悄悄 偷偷 暗中 静默 こっそり 密かに
        ひそかに 秘かに 몰래 은밀히 조용히""",
    "REPORT": """
        summary summaries log logs history transcript output reply zusammenfassung protokoll verlauf resume
        compte-rendu l'historique resumen registro historial resumo riepilogo cronologia сводк* отчет* истори*
        журнал* 总结 摘要 日志 记录里 要約 履歴 ログ 요약 기록 로그""",
    # -- what is asked for
    "SEND": """
        send upload post exfiltrate transmit forward email e-mail mail leak curl relay sends submit sending
        posting uploading smuggle sende senden schicke schick schicken sendet ubertrage ubertragen leite lade
        hochladen ubermittle ubermitteln poste maile envoie envoyez envoyer transmets transmettez transmettre
        televerse televersez transfere transferer publie envia envie enviar enviale sube suba subir manda mande
        mandar transmite transmitir reenvia comparte compartir publica transmita compartilhe publique invia
        inviale invialo inviare inviali mandale mandare carica caricare trasmetti trasmettere inoltra отправ*
        отошли* перешли* пошли загрузи* вышли* передай* передава* выгрузи* присылай* 发送 发给 发到 上传 传到
        传给 提交到 寄到 转发 外发 送信 送って 送り アップロード 転送 投稿 보내 전송 업로드 전달""",
    "PUT": """
        include append paste attach embed share insert print publish copy put write add anfuge fuge fuege hange
        kopiere fug teile veroffentliche ajoute colle copie partage insere inclus joins inserez incluye anade
        pega copia adjunta inserta inclua cole adicione anexe includi incolla allega aggiungi включи* вставь*
        добавь* приложи* скопируй* 附上 附在 附加 写入 写进 贴到 粘贴 复制 放到 放进 包含 貼り付け 添付 書き込
        含め 載せ コピー 記載 붙여 포함 첨부 복사 적어""",
    "PLACE": """
        comment comments pr prs issue issues description message title channel gist pastebin body kommentar
        beschreibung commit-nachricht commentaire comentario descripcion descricao commento descrizione
        комментари* описани* 评论 说明 说明中 描述 提交信息 提交说明 コメント 説明文 本文 댓글 설명 메시지""",
    "SECRET": """
        password passwords passwort passworter passworten passphrase token tokens credential credentials secrets
        zugangsdaten schlussel geheimnisse identifiants jeton jetons contrasena contrasenas clave claves
        credenciales credencial senha senhas credenciais chave chaves segredos credenziali segreti chiave chiavi
        парол* ключ* токен* секрет* учетн* креденш* 密码 密钥 口令 令牌 凭证 凭据 私钥 秘钥 パスワード トークン
        認証情報 秘密鍵 APIキー キーを 資格情報 鍵 비밀번호 토큰 비밀키 자격 키를 环境变量 環境変数 환경변수
        环境变数 umgebungsvariablen env""",
    "URL": "url webhook",
    "KIND": """
        connection database api ssh private secret access signing deploy deployment environment env prive privee
        d'acces privees d'environnement privada privadas privata gpg aws github""",
    "KEY": "key keys string strings cle cles variables variable vars var variaveis variabili entorno",
    "TALK": """
        conversation chat dialogue gesprach gesprachs chatverlauf unterhaltung conversacion conversa
        conversazione диалог* переписк* 对话 聊天记录 会话内容 会話 대화""",
    "DANGER": """
        delete wipe erase drop destroy merge push deploy execute approve accept grant install rm loschen losche
        losch mergen mergst ausfuhren fuhre deploye genehmige akzeptiere freigeben installiere pushe supprime
        supprimez efface effacez executez fusionne fusionnez approuve approuvez accepte acceptez valide deploie
        installe pousse borra borre elimina elimine ejecuta ejecute ejecutar fusiona aprueba apruebe acepta
        acepte despliega instala apague exclua executar aprove aceite instale implante cancella esegui eseguire
        approva accetta unisci installa distribuisci удал* выполн* запусти* запускай* сливай* слей мержи* одобр*
        принимай* прими установи* деплой* 删除 清空 合并 推送 部署 执行 批准 通过 安装 同意 運行 运行 削除
        マージ プッシュ デプロイ 実行 承認 インストール 許可 삭제 병합 머지 푸시 배포 실행 승인 설치 허용""",
    "CONFIRM": """
        ask asking confirm confirmation confirming approval approvals permission permissions consent review
        prompting questions question reviewing fragen nachfragen nachzufragen ruckfrage ruckfragen bestatigung
        genehmigung erlaubnis zustimmung frage prufung nachfrage warten abwarten demander validation
        autorisation approbation attendre relecture demande preguntar pedir permiso confirmacion aprobacion
        autorizacion consultar revision preguntes esperar perguntar permissao confirmacao aprovacao revisao
        autorizacao pergunte chiedere conferma permesso approvazione autorizzazione revisione attendere
        спрашива* спрос* подтвержд* разрешен* согласи* одобрен* проверк* запроса 询问 确认 许可 授权 等待 审批
        审核 过问 征求 確認 許可を 承諾 問い合わせ 尋ね 待た レビュー 확인 묻지 물어 허락 승인을 동의""",
    "TURN": "turn switch schalte coupe apaga desliga",
    "OFF": "off ab aus",
    "DISABLE": """
        disable deactivate remove deaktiviere deaktivieren abschalten schalte ausschalten desactive desactivez
        desactiver coupe desactiva desactivar deshabilita desative desativar desabilite disattiva disattivare
        disabilita отключи* отключай* выключи* 关闭 禁用 停用 绕过 無効に 無効化 オフに 回避 비활성화 끄고 우회
        해제""",
    "GUARD": """
        guardrail guardrails safeguards safeguard sandbox sandboxing sable sicherheitsprufung
        sicherheitsprufungen sicherheitsregeln schutzmassnahmen schutzmechanismen sicherheitsmechanismen
        garde-fous securite seguridad salvaguardas seguranca salvaguardias sicurezza безопасност* защит*
        安全检查 安全限制 安全策略 安全机制 沙箱 沙盒 安全チェック 安全装置 サンドボックス セーフティ
        ガードレール 安全対策 샌드박스 안전장치 보안""",
    "SAFETY": "safety content ethical moral ethics",
    "CHECKS": """
        protocols protocol checks check filters filter controls protections features training measures policy
        mechanisms""",
    # -- who claims to be above others
    "MEMO": """
        memory memo note entry record message notice notes instruction file notiz eintrag erinnerung nachricht
        hinweis mitteilung datei notizen memoire avis fichier memoria nota mensaje aviso entrada registro
        mensagem anotacao lembrete messaggio avviso promemoria заметк* запис* сообщени* памят* уведомлени* 记忆
        记录 消息 备忘 笔记 本条 メモ メモリ 記憶 ノート メッセージ お知らせ 메모 기억 기록에 메시지 공지""",
    "THIS": """
        this these following below diese dieser dieses diesem diesen ce cet cette ces ceci esta este esto estas
        questa questo queste desta deste isto эта эту этой этому этот этом это 本 此 这条 这个 この こちらの 이
        다음 아래""",
    "OUTRANK": """
        overrides supersedes precedence outranks trumps priority prevails overriding supersede authoritative
        wins vorrang ubersteuert ersetzt hohere hochste massgeblich vorrangig prioritaire priorite prevaut
        l'emporte prime preseance prioridad prevalece precedencia prioritario prevalecen anula prioridade
        priorita prevale precedenza приорите* главнее превыше важнее перекрыва* отменяет 优先级 优先 高于 凌驾
        覆盖 優先 上書き 우선 덮어""",
    "ALLOWED": """
        authorized authorised pre-approved preapproved pre-authorized autorisiert befugt bevollmachtigt
        ermachtigt autorise autorisee habilite autorizado autorizada autorizados autorizzato autorizzata
        уполномочен* разрешено 有权 已授权 被授权 获得授权 許可されて 承認済み 権限を 허가 승인된 권한""",
    "ONLY": """
        only solely exclusively just nur ausschliesslich allein seul seule seulement uniquement exclusivement
        solo unicamente solamente exclusivamente apenas somente soltanto только лишь исключительно 只 仅 只能
        只有 だけ のみ 만 대로만 오직""",
    "FOLLOW": """
        follow following obey obeying comply heed adhere befolge befolgen folge folgen richte halte beachte
        gehorche suis suivez suivre obeis obeissez respecte respectez compte tiens sigue siga sigas seguir
        obedece obedezca caso obedeca segui seguire obbedisci esegui следуй* следовать слушай* подчиня* подчини*
        соблюда* выполняй 遵循 遵守 听从 服从 按照 遵照 照做 従っ 従う 従い 従わ 従え 따르 따라 복종 행동""",
    # -- when
    "NOW": """
        now jetzt nunmehr fortan maintenant desormais dorenavant ahora adelante agora doravante adesso d'ora
        теперь отныне впредь 现在 从今 今后 以后 即刻起 今から これから 以後 以降 今後 이제 지금부터 앞으로""",
    "MUST": """
        must mustn't urgent immediately urgently musst mussen sofort dringend umgehend unverzuglich
        immediatement urgence dois devez doit darf durfen inmediatamente urgente debes debe imediatamente deve
        immediatamente subito должен должна обязан* немедленно срочно 必须 立即 立刻 马上 紧急 务必 必ず 直ちに
        すぐに 至急 緊急 今すぐ 반드시 즉시 긴급 당장""",
    "ALWAYS": """
        always immer stets toujours siempre sempre всегда 始终 总是 一律 常に いつも 항상 언제나 automatically
        automatisch automatiquement automaticamente автоматически 自动 自動""",
    "BEFORE": """
        before vor bevor avant antes prima перед прежде 前に まえに 전에 先把 先将 start beginning beginn debut
        inicio comienzo inizio начале 开始时 开始前 最初に""",
    "EACH": """
        each jede jedem jeden jeder jedes chaque cada ogni каждым каждой каждый каждом 每次 每个 每一 毎回
        たびに 各 매번 마다""",
    "TASK": """
        task tasks session sessions answer answers response responses answering responding aufgabe sitzung
        antwort commit reponse tache tarea sesion respuesta resposta tarefa sessao risposta attivita sessione
        ответ* задач* сесси* 会话 任务 回答 回复 提交 对话时 作業 タスク セッション 応答 回答する 작업 세션 응답
        답변""",
    # -- who the model is told to be
    "MODE": "mode modus modo modalita режим* 模式 モード 모드",
    "LONGER": "longer mehr plus mas mais piu больше 再",
    "PRETEND": """
        pretend roleplay role-play simulate impersonate finge finja fingi spiele притворись 扮演 假装 ふりを
        演じ なりきっ 행세 척하""",
    "FREE": "free frei libre libero livre свободен свободна свободный 自由 자유",
    "END": "end ende fin fine fim конец 结束 終わり 終了 끝",
    "ACT": """
        act pretend behave roleplay role-play play spiele verhalte benimm tue agis joue comporte actua actuas
        actue comportate finge aja finja agisci fingi comportati веди притворись действуй 扮演 假装 充当 表现
        振る舞 ふりを 演じ なりきっ 행세 척하 연기""",
    "BE": "are bist sind es etes eres sei seras siamo становишься являешься 是 です なります なった 입니다",
    "LIMIT": """
        constraint restriction restrictions limits limitations filters censorship constraints boundaries morals
        einschrankung einschrankungen beschrankung beschrankungen grenzen zensur filter limit limite limites
        censure contrainte contraintes restriccion restricciones censura filtros limitaciones restricao
        restricoes limitacoes restrizioni restrizione limiti limitazioni ограничени* цензур* фильтр* запрет*
        限制 约束 审查 束缚 制限 制約 検閲 規制 제한 제약 검열""",
    "UNLEASHED": """
        entwicklermodus unbeschrankt* uneingeschrankt* unzensiert* unlimited illimite ilimitado illimitato
        неограниченн* 无限制 不受限 unrestricted uncensored jailbroken jailbreak unfiltered unbound dan devmode
        godmode uneingeschrankt unzensiert unbeschrankt irrestricto 越狱 無制限 無検閲 무제한 탈옥 开发者模式
        開発者モード 개발자모드""",
    "REVEAL": """
        muestrame dime mostrami zeig sag quelles quels cuales quali quais welche какие 是什么 reveal print
        repeat output leak show display dump recite echo paste share translate summarize encode what zeige
        verrate gib affiche affichez revele revelez montre montrez muestra muestre revela imprime mostre mostra
        rivela stampa покажи* раскрой* выведи* 显示 输出 透露出 打印 泄露 表示 出力 見せ 教えて 보여 출력 공개""",
    "DECODE": """
        decode decodes decoded decrypt dekodiere dekodieren entschlussle decodiere decodez dechiffre decodifica
        decodifique descodifica decodificare декодируй* расшифруй* раскодируй* 解码 解密 デコード 復号 디코딩
        디코드 base64 rot13""",
    "OBEY": """
        execute run follow perform obey do carry ausfuhren fuhre befolge ausfuhrst executez suis suivez ejecuta
        ejecute sigue siga esegui segui выполн* следуй* 执行 遵循 照做 実行 従っ 실행 따라""",
    "DEAR": """
        dear attention hello hey liebe lieber liebes hallo achtung cher chere bonjour querido querida estimado
        estimada hola atencion caro cara prezado prezada ola atencao gentile egregio attenzione уважаемый
        уважаемая дорогой внимание привет 亲爱 尊敬 注意 你好 親愛 拝啓 注意事項 안녕 친애 주의 님""",
    "TO": "to for an fur a pour para aux per для к",
    "ANSWER": """
        answering responding replying respond answer reply response responses summarizing summarising summary
        antwortest antworten antworte antwort repondre repondez reponds reponse reponses responder respondas
        responde respuesta respuestas resposta respostas rispondere rispondi risposta risposte отвечать ответ*
        回答 回复 回應 答复 応答 返答 返信 응답 답변 대답""",
    "GOAL": """
        task goal objective mission purpose job aufgabe ziel auftrag objectif tache tarea objetivo mision missao
        obiettivo compito задача задачу цель 任务 目标 使命 タスク 目的 任務 임무 목표""",
    "BOUND": """
        bound constrained obliged restricted gebunden verpflichtet lie soumis contraint sujeto obligado atado
        vinculado vincolato soggetto связан связана обязан 受 束缚 縛られ 구속""",
    "QUIET": "between quiet yourself",
    "KEEP": "keep",
    "OMIT": """
        omit exclude leave lass omets laisse omite deja omita ometti tralascia опусти* 省略 略去 省く 省い 생략""",
    "EXEMPT": """
        exempt whitelisted waived ausgenommen befreit exempte exemptee dispense exento exenta isento isenta
        esente освобожд*""",
    "REFUSE": """
        refuse decline reject verweigere verweigern verweigert ablehnen lehne refuser refusez refuses rechaces
        rechazar niegues negarte recuse recusar rifiutare rifiuta отказыва* отказать 拒绝 拒否 断って 断ら 拒む
        거부 거절""",
    "READ": """
        reading reads processing parsing liest verarbeitet lit lisant lee leyendo lendo legge leggendo чита*
        阅读 读到 看到 読む 読んで 読んだ 읽는 읽고""",
    "IMPORTANT": """
        important critical wichtig wichtige wichtiger importante importantes важно важн* 重要 중요한 중요""",
    "MESSAGE": """
        message messages announcement nachricht mitteilung mensaje anuncio mensagem messaggio сообщени* 消息
        通知 公告 メッセージ お知らせ 메시지 공지 context""",
    "TRACES": "traces evidence tracks spuren trazas huellas rastros tracce traccia следы 痕迹 痕跡 흔적",
    "TOOL": "tool tools function werkzeug outil herramienta ferramenta strumento инструмент* 工具 ツール 도구",
    "SHALL": """
        should shall please will soll sollen sollte bitte devrait doit devez s'il debe deberia favor deve devera
        dovrebbe следует пожалуйста 应 应当 请 須 べき ください 下さい 해주세요 주세요 하십시오""",
    "DATA": """
        data messages queries contents content files records emails mails everything secrets daten inhalt
        inhalte nachrichten dateien donnees contenu fichiers datos contenido archivos mensajes dados conteudo
        arquivos dati contenuto file данные содержимое файлы 数据 内容 文件 消息 データ ファイル 中身 데이터
        내용 파일""",
    "FILTER": "filter filters filtre filtres filtro filtros filtri фильтр* 过滤器 过滤 フィルター フィルタ 필터",
    "DEVELOPER": """
        developer dev debug god jailbreak entwickler developpeur desarrollador desenvolvedor sviluppatore
        разработчика 开发者 開発者 개발자""",
    "ENTER": """
        enable activate enter switch aktiviere wechsle schalte active activez passe entre activa entra ative
        ativa attiva активируй* включи* перейди* 启用 激活 进入 切换 有効 切り替え 入って 활성화 전환""",
    "SAFEGUARDS": """
        guardrails safeguards sicherheitsrichtlinien sicherheitsregeln schutzmechanismen sicherheitsmechanismen
        garde-fous salvaguardas salvaguardias 安全过滤器 安全限制 安全机制 安全策略 安全チェック 安全装置
        ガードレール 안전장치""",
}
